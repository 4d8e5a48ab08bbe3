use serde_json::json;

use super::{check::reasons, policy::Version, *};

fn labels(value: &Value) -> Policy {
    Policy::NONE.with(value.as_object()).0
}

/// What a pod with this spec, and these annotations, violates.
fn found(level: Level, minor: u32, pod: &Value) -> Vec<Violation> {
    let pod = pod.as_object().expect("an object");
    violations(LevelVersion { level, version: Version::Minor(minor) }, NEWEST, Pod::of(pod).expect("a spec"))
}

#[test]
fn labels_say_what_is_refused_noted_and_warned_of() {
    let text = |labels: &Value| {
        let policy = self::labels(labels);
        format!("{} {} {}", policy.enforce, policy.audit, policy.warn)
    };
    for (labels, expected) in [
        (json!({}), "privileged:latest privileged:latest privileged:latest"),
        (
            json!({"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.30"}),
            "baseline:v1.30 privileged:latest baseline:v1.30",
        ),
        (
            json!({"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "baseline"}),
            "restricted:latest privileged:latest baseline:latest",
        ),
        (
            json!({"pod-security.kubernetes.io/enforce": "strict", "pod-security.kubernetes.io/audit": "strict"}),
            "restricted:latest privileged:latest privileged:latest",
        ),
        (
            json!({"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/warn-version": "v1.01"}),
            "privileged:latest privileged:latest restricted:latest",
        ),
    ] {
        assert_eq!(text(&labels), expected, "{labels}");
    }
}

#[test]
fn labels_that_make_no_sense_are_told() {
    let labels = json!({
        "pod-security.kubernetes.io/enforce": "strict", "pod-security.kubernetes.io/warn-version": "1.30",
    });
    let errors = Policy::NONE.with(labels.as_object()).1;
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of privileged, \
             baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"1.30\": must be \"latest\" or \
             \"v1.x\"",
        ]
    );
}

/// Each check: a pod that only it has something against, and what it says. The rows are what kube-apiserver 1.36.4 says.
#[test]
fn every_check_of_the_baseline() {
    let one = |container: Value| {
        let mut container = container;
        container["name"] = "c".into();
        json!({"spec": {"containers": [container]}})
    };
    let security = |context: Value| one(json!({"securityContext": context}));
    let rows = [
        (
            json!({"spec": {"hostNetwork": true, "hostPID": true, "hostIPC": true}}),
            "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
        ),
        (
            json!({"spec": {"volumes": [{"name": "v", "hostPath": {}}, {"name": "w", "hostPath": {}}]}}),
            r#"hostPath volumes (volumes "v", "w")"#,
        ),
        (
            one(json!({"ports": [{"hostPort": 80}, {"hostPort": 8}, {"hostPort": 0}]})),
            r#"hostPort (container "c" uses hostPorts 8, 80)"#,
        ),
        (
            one(
                json!({"livenessProbe": {"httpGet": {"host": "h"}}, "lifecycle": {"preStop": {"tcpSocket": {"host": "g"}}}}),
            ),
            r#"probe or lifecycle host (container "c" uses probe or lifecycle hosts "g", "h")"#,
        ),
        (
            security(json!({"privileged": true})),
            r#"privileged (container "c" must not set securityContext.privileged=true)"#,
        ),
        (
            security(json!({"capabilities": {"add": ["NET_RAW", "CHOWN", "BPF"]}})),
            r#"non-default capabilities (container "c" must not include "BPF", "NET_RAW" in securityContext.capabilities.add)"#,
        ),
        (
            security(json!({"procMount": "Unmasked"})),
            r#"procMount (container "c" must not set securityContext.procMount to "Unmasked")"#,
        ),
        (
            security(json!({"seLinuxOptions": {"type": "spc_t", "user": "u", "role": "r"}})),
            r#"seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; role may not be set)"#,
        ),
        (
            security(json!({"seccompProfile": {"type": "Unconfined"}})),
            r#"seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")"#,
        ),
        (
            json!({"spec": {"securityContext": {"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}}}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            security(json!({"windowsOptions": {"hostProcess": true}})),
            r#"hostProcess (container "c" must not set securityContext.windowsOptions.hostProcess=true)"#,
        ),
        (
            json!({"spec": {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}}),
            r#"forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")"#,
        ),
        (
            json!({"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}}, "spec": {}}),
            "forbidden AppArmor profile (annotation must not set AppArmor profile type to \
             \"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\")",
        ),
    ];
    for (pod, expected) in rows {
        assert_eq!(details(&found(Level::Baseline, 36, &pod)), expected);
        assert_eq!(found(Level::Privileged, 36, &pod), []);
    }
}

#[test]
fn every_check_of_the_restricted_level() {
    let pod = json!({"spec": {
        "containers": [
            {"name": "a", "securityContext": {"runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}},
            {"name": "b", "securityContext": {"allowPrivilegeEscalation": false}},
        ],
        "volumes": [{"name": "v", "hostPath": {}}, {"name": "w", "secret": {}}, {"name": "x", "nfs": {}}],
    }});
    assert_eq!(
        details(&found(Level::Restricted, 36, &pod)),
        "allowPrivilegeEscalation != false (container \"a\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (container \"b\" must set securityContext.capabilities.drop=[\"ALL\"]; container \"a\" \
         must not include \"CHOWN\" in securityContext.capabilities.add), restricted volume types (volumes \"v\", \"x\" use \
         restricted volume types \"hostPath\", \"nfs\"), runAsNonRoot != true (pod or containers \"a\", \"b\" must set \
         securityContext.runAsNonRoot=true), runAsUser=0 (container \"a\" must not set runAsUser=0), seccompProfile (pod or \
         containers \"a\", \"b\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    let safe = json!({"spec": {
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "a", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        }}],
    }});
    assert_eq!(found(Level::Restricted, 36, &safe), []);
}

#[test]
fn a_level_is_understood_as_of_a_release() {
    let of = |level, minor, pod: &Value| reasons(&found(level, minor, pod));
    let sysctl = json!({"spec": {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}}});
    assert_eq!(of(Level::Baseline, 32, &sysctl), "");
    assert_eq!(of(Level::Baseline, 31, &sysctl), "forbidden sysctls");
    let own_users = json!({"spec": {"hostUsers": false, "containers": [
        {"name": "c", "securityContext": {"procMount": "Unmasked", "runAsNonRoot": false, "runAsUser": 0,
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "Localhost"}}},
    ]}});
    assert_eq!(of(Level::Baseline, 35, &own_users), "");
    assert_eq!(of(Level::Baseline, 34, &own_users), "procMount");
    assert_eq!(of(Level::Restricted, 35, &own_users), "procMount");
    assert_eq!(of(Level::Restricted, 34, &own_users), "procMount, runAsNonRoot != true, runAsUser=0");
    let windows = json!({"spec": {"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": true}, "containers": [{"name": "c"}]}});
    assert_eq!(of(Level::Restricted, 25, &windows), "");
    assert_eq!(
        of(Level::Restricted, 24, &windows),
        "allowPrivilegeEscalation != false, unrestricted capabilities, seccompProfile"
    );
    assert_eq!(of(Level::Restricted, 7, &windows), "");
    let annotated = json!({"metadata": {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}}, "spec": {}});
    assert_eq!(
        details(&found(Level::Baseline, 18, &annotated)),
        "seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")"
    );
    assert_eq!(of(Level::Baseline, 19, &annotated), "");
}

#[test]
fn only_other_images_make_a_pod_another() {
    let pod = |image: &str, ephemeral: &[&str]| {
        let ephemeral: Vec<Value> =
            ephemeral.iter().map(|name| json!({"name": name, "image": "e"})).collect();
        let pod = json!({"spec": {"containers": [{"name": "c", "image": image}], "ephemeralContainers": ephemeral}});
        pod.as_object().expect("an object").clone()
    };
    assert!(!existing::is_significant(&pod("a", &["x"]), &pod("a", &["x", "y"])));
    assert!(existing::is_significant(&pod("b", &[]), &pod("a", &[])));
    assert!(existing::is_significant(&pod("a", &["x"]), &pod("a", &[])));
}

fn configured(text: &str) -> Result<PodSecurityConfig, String> {
    let head = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n";
    PodSecurityConfig::read(format!("{head}{text}").as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn an_administrator_says_what_labels_do_not() {
    let config = configured(
        "defaults: {enforce: baseline, enforce-version: v1.29, audit: restricted}\n\
         exemptions: {namespaces: [kube-system], usernames: [root], runtimeClasses: [vm]}\n",
    );
    let config = config.expect("a configuration");
    let (policy, errors) = config.defaults.with(None);
    assert!(errors.is_empty());
    assert_eq!(
        [policy.enforce, policy.audit, policy.warn].map(|mode| mode.to_string()),
        ["baseline:v1.29", "restricted:latest", "privileged:latest"]
    );
    assert!(config.exempts_namespace("kube-system") && config.exempts_user("root"));
    assert!(!config.exempts_namespace("root") && !config.exempts_user(""));
    let spec = serde_json::json!({"runtimeClassName": "vm"});
    assert!(config.exempts_class(spec.as_object().expect("an object")));
    let labels = serde_json::json!({"pod-security.kubernetes.io/warn": "baseline"});
    let labels = labels.as_object();
    let (policy, _) = config.defaults.with(labels);
    assert_eq!(
        config.ignored("kube-system", &policy, labels).as_deref(),
        Some(
            "namespace \"kube-system\" is exempt from Pod Security, and the policy (warn=baseline:latest) will be ignored"
        )
    );
    assert_eq!(config.ignored("kube-system", &config.defaults, None), None);
}

#[test]
fn a_bad_configuration_is_refused() {
    for (text, why) in [
        ("default: {}", "unknown field \"default\""),
        (
            "defaults: {enforce: strict, warn-version: \"1.2\"}",
            "[defaults.enforce: Invalid value: \"strict\": must be one of privileged, baseline, restricted, \
             defaults.warn-version: Invalid value: \"1.2\": must be \"latest\" or \"v1.x\"]",
        ),
        (
            "exemptions: {usernames: [a, a, \"\"], namespaces: [UP]}",
            "exemptions.usernames[1]: Duplicate value: \"a\", exemptions.usernames[2]: Invalid value: \"\": username must not be \
             empty]",
        ),
    ] {
        let refused = configured(text).expect_err("refused");
        assert!(refused.contains(why), "{refused}");
    }
    let other = PodSecurityConfig::read(b"kind: Pod\napiVersion: v1\n").expect_err("another kind");
    assert_eq!(other.to_string(), "no kind \"Pod\" is registered for version \"v1\"");
}
