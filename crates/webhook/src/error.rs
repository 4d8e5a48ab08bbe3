use std::{error::Error, io, time::Duration};

use concord_meta::{Status, go::quote};
use jiff::Timestamp;
use rustls::{AlertDescription, CertificateError, InvalidMessage, pki_types::ServerName};

use crate::{
    InvalidConfig,
    dial::{DialError, plain},
};

/// A webhook was not called, or gave no answer that could be used.
///
/// The texts are those of Go's HTTP client and of client-go, which users know from kube-apiserver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It cannot be called at all.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// There was no connection, or it broke before there was an answer.
    #[error("Post {}: {reason}", quote(url))]
    Transport {
        /// What was asked for.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// There was no answer in time.
    #[error("Post {}: context deadline exceeded", quote(url))]
    Timeout {
        /// What was asked for.
        url: String,
    },
    /// The answer ended before it was complete.
    #[error("unexpected error when reading response body. Please retry. Original error: {0}")]
    Body(String),
    /// The answer is longer than is read.
    #[error("Post {}: the answer is longer than {limit} bytes", quote(url))]
    TooLarge {
        /// What was asked for.
        url: String,
        /// How long it may be.
        limit: usize,
    },
    /// There was an answer that is no success.
    #[error("{}", .0.message)]
    Status(Box<Status>),
    /// There was a success with nothing in it.
    #[error("0-length response with status code: {code} and content type: {content_type}")]
    Empty {
        /// The code of the answer.
        code: u16,
        /// What its body would be.
        content_type: String,
    },
}

/// What Go would say about a request that got no answer.
#[must_use]
pub fn reason(error: &(dyn Error + 'static)) -> String {
    if let Some(error) = find::<DialError>(error) {
        return error.to_string();
    }
    if let Some(error) = find::<rustls::Error>(error) {
        return tls_reason(error);
    }
    if let Some(error) = find::<io::Error>(error) {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
            _ => plain(error),
        };
    }
    match find::<hyper::Error>(error) {
        Some(error) if error.is_incomplete_message() || error.is_canceled() => "EOF".to_owned(),
        Some(error) if error.is_parse() => {
            format!("net/http: HTTP/1.x transport connection broken: malformed HTTP response: {error}")
        }
        Some(error) => error.to_string(),
        None => error.to_string(),
    }
}

/// The first error of this type among an error and what caused it. An [`io::Error`] hides what it was made of from
/// [`Error::source`].
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            // Only an io::Error is made of others of its kind, and the innermost has the news.
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            return inner.and_then(|inner| find::<T>(inner)).or(Some(found));
        }
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

fn tls_reason(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => {
            format!("tls: failed to verify certificate: x509: {}", certificate_reason(error))
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        rustls::Error::AlertReceived(alert) => format!("remote error: tls: {}", alert_reason(*alert)),
        other => format!("tls: {other}"),
    }
}

fn alert_reason(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::HandshakeFailure => "handshake failure".to_owned(),
        AlertDescription::BadCertificate => "bad certificate".to_owned(),
        AlertDescription::CertificateRequired => "certificate required".to_owned(),
        AlertDescription::ProtocolVersion => "protocol version not supported".to_owned(),
        AlertDescription::UnrecognisedName => "unrecognized name".to_owned(),
        AlertDescription::InternalError => "internal error".to_owned(),
        other => format!("{other:?}"),
    }
}

fn certificate_reason(error: &CertificateError) -> String {
    let outside = "certificate has expired or is not yet valid: current time";
    match error {
        // A signature that is not right is one of another authority that has the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => wrong_name(expected, presented),
        CertificateError::ExpiredContext { time, not_after } => {
            format!("{outside} {} is after {}", instant(time.as_secs()), instant(not_after.as_secs()))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("{outside} {} is before {}", instant(time.as_secs()), instant(not_before.as_secs()))
        }
        other => other.to_string(),
    }
}

fn instant(seconds: u64) -> String {
    let at = Timestamp::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    at.map_or_else(|_| seconds.to_string(), |at| at.to_string())
}

/// `presented` is as the verifier writes it: `DnsName("a")`, `IpAddress(::1)`.
fn wrong_name(expected: &ServerName<'_>, presented: &[String]) -> String {
    let of = |kind: &str| -> Vec<&str> {
        let names = presented.iter().filter_map(|name| name.strip_prefix(kind)?.strip_suffix(')'));
        names.map(|name| name.trim_matches('"')).collect()
    };
    let expected_text = expected.to_str();
    let (names, none) = match expected {
        ServerName::IpAddress(_) => (
            of("IpAddress("),
            format!("cannot validate certificate for {expected_text} because it doesn't contain any IP SANs"),
        ),
        _ => (
            of("DnsName("),
            format!("certificate is not valid for any names, but wanted to match {expected_text}"),
        ),
    };
    match names.is_empty() {
        true => none,
        false => format!("certificate is valid for {}, not {expected_text}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_are_told_as_go_does() {
        let name = |text: &'static str| ServerName::try_from(text).expect("a name");
        let presented =
            ["DnsName(\"a\")".to_owned(), "DnsName(\"b\")".to_owned(), "IpAddress(::1)".to_owned()];
        for (expected, presented, text) in [
            ("hook.ns.svc", &presented[..], "certificate is valid for a, b, not hook.ns.svc"),
            ("127.0.0.1", &presented[..], "certificate is valid for ::1, not 127.0.0.1"),
            (
                "127.0.0.1",
                &presented[..2],
                "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
            ),
            ("c", &presented[2..], "certificate is not valid for any names, but wanted to match c"),
        ] {
            assert_eq!(wrong_name(&name(expected), presented), text);
        }
    }

    #[test]
    fn the_innermost_error_of_the_system_is_told() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(reason(&io::Error::other(refused)), "connection refused");
        let tls = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let wrapped = io::Error::other(io::Error::other(tls));
        assert_eq!(
            reason(&wrapped),
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        );
    }
}
