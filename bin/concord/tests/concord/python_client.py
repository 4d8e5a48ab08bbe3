"""What a Python program does with the official client: create, list, watch, patch, apply, delete. Prints `ok`."""

import sys

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic import DynamicClient

NAMESPACE = "python"

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
apps = client.AppsV1Api()


def refused(status, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ApiException as error:
        assert error.status == status, (error.status, error.body)
        return
    raise AssertionError(f"{call.__name__} should have been refused")


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"by": "python"}), data=data)


assert client.VersionApi().get_code().minor.startswith("36")
core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))

created = core.create_namespaced_config_map(NAMESPACE, config_map("a", k="v"))
assert created.metadata.uid and created.data == {"k": "v"}
refused(409, core.create_namespaced_config_map, NAMESPACE, config_map("a"))
refused(422, core.create_namespaced_config_map, NAMESPACE, config_map("A_"))
core.create_namespaced_config_map(NAMESPACE, config_map("b", k="w"))

listed = core.list_namespaced_config_map(NAMESPACE, label_selector="by=python")
assert [item.metadata.name for item in listed.items] == ["a", "b"]
# The namespace has a map of the server's own, which comes when it comes.
page = core.list_namespaced_config_map(NAMESPACE, label_selector="by=python", limit=1)
rest = core.list_namespaced_config_map(NAMESPACE, label_selector="by=python", _continue=page.metadata._continue)
assert [[item.metadata.name for item in part.items] for part in (page, rest)] == [["a"], ["b"]]

created.data["k"] = "x"
replaced = core.replace_namespaced_config_map("a", NAMESPACE, created)
refused(409, core.replace_namespaced_config_map, "a", NAMESPACE, created)
patched = core.patch_namespaced_config_map("a", NAMESPACE, {"data": {"p": "q"}})
assert patched.data == {"k": "x", "p": "q"}
patched = core.patch_namespaced_config_map("a", NAMESPACE, [{"op": "remove", "path": "/data/p"}])
assert patched.data == {"k": "x"}

seen = []
for event in watch.Watch().stream(
    core.list_namespaced_config_map,
    NAMESPACE,
    label_selector="by=python",
    resource_version=listed.metadata.resource_version,
    timeout_seconds=30,
):
    seen.append((event["type"], event["object"].metadata.name))
    if len(seen) == 3:
        break
assert seen == [("MODIFIED", "a")] * 3, seen

dynamic = DynamicClient(client.ApiClient())
maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"x": "1"}}
applied = maps.server_side_apply(body=wanted, name="applied", namespace=NAMESPACE, field_manager="python")
again = maps.server_side_apply(body=wanted, name="applied", namespace=NAMESPACE, field_manager="python")
assert applied.metadata.resourceVersion == again.metadata.resourceVersion
other = dict(wanted, data={"x": "2"})
refused(409, maps.server_side_apply, body=other, name="applied", namespace=NAMESPACE, field_manager="other")

template = client.V1PodTemplateSpec(
    metadata=client.V1ObjectMeta(labels={"app": "web"}),
    spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="nginx")]),
)
deployment = client.V1Deployment(
    metadata=client.V1ObjectMeta(name="web"),
    spec=client.V1DeploymentSpec(
        replicas=1, selector=client.V1LabelSelector(match_labels={"app": "web"}), template=template
    ),
)
apps.create_namespaced_deployment(NAMESPACE, deployment)
scale = apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 3}})
assert scale.spec.replicas == 3
assert apps.read_namespaced_deployment("web", NAMESPACE).spec.replicas == 3

core.delete_namespaced_config_map("a", NAMESPACE)
refused(404, core.read_namespaced_config_map, "a", NAMESPACE)
core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="by=python")
left = [item.metadata.name for item in core.list_namespaced_config_map(NAMESPACE).items]
assert "b" not in left and "applied" in left, left
core.delete_namespace(NAMESPACE)
print("ok")
