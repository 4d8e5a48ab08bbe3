//! A key management service to try things with, also with a kube-apiserver: it says where it is, and stays until it is
//! interrupted. What it encrypts is no secret.

use std::{io::Write as _, time::Duration};

use concord_testing::kms::KmsPlugin;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let key = std::env::args().nth(1).unwrap_or_else(|| "key-1".to_owned());
    let plugin = KmsPlugin::start(&key)?;
    writeln!(std::io::stdout(), "{}", plugin.endpoint())?;
    loop {
        tokio::time::sleep(Duration::from_secs(3600)).await;
    }
}
