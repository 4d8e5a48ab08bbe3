use super::*;
use crate::{http::testing::read, version::sample};

async fn scraped(metrics: &Metrics) -> String {
    let response = metrics.scrape();
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    read(response).await.1
}

#[tokio::test]
async fn metrics_have_upstreams_names_and_labels() {
    let metrics = Metrics::new();
    metrics.set_build_info(&sample());
    metrics.set_feature_enabled("StorageVersionAPI", "ALPHA", true);
    let deployments = GroupResource::new("apps", "deployments");
    metrics.before_scrape(move |metrics| metrics.set_objects(&deployments, 7));
    metrics.set_storage_size(4096);
    let pods = GroupResource::new("", "pods");
    metrics.storage_latency("get", &pods).observe(std::time::Duration::from_millis(30));
    metrics.watch_events("", "v1", "pods").sent(2000);
    let time = std::time::Duration::from_millis(1);
    metrics.access().authentication(&Ok(None), time);
    metrics.access().authorization(&crate::Decision::Allow, time);
    metrics.access().impersonation(Some("impersonate:user-info"), time);
    metrics.cel().compiled(time);
    metrics.cel().evaluated(time);
    metrics.queues().added("tokens", 2);
    metrics.queues().set_depth("tokens", 2);
    metrics.queues().begun("tokens", time);
    metrics.queues().done("tokens", time, true);
    metrics.clients().asked("POST", "hook.example.com:8443", Some(200), time);
    metrics.clients().asked("POST", "hook.example.com:8443", None, time);
    metrics.clients().sizes("POST", "hook.example.com:8443", 100, Some(1000));
    metrics.peers().rerouted(200, ["batch", "v1", "jobs"]);
    metrics.peers().proxy_error("proxy_transport", ["", "v1", "pods"]);
    metrics.peers().sync_error("fetch_discovery");
    metrics.peers().merged(true);
    metrics.peers().nopeer();
    metrics.peers().aggregated();
    metrics.peers().set_peers([("fresh", 2)]);
    metrics.aggregation().set_available("v1.example.com", false);
    metrics.aggregation().became_unavailable("v1.example.com", "FailedDiscoveryCheck");
    metrics.aggregation().set_available("v2.example.com", true);
    metrics.aggregation().set_available("v3.example.com", true);
    metrics.aggregation().forget("v3.example.com");
    let running = metrics.read_only.begin();
    let text = scraped(&metrics).await;
    for expected in [
        "kubernetes_build_info{build_date=\"1970-01-01T00:00:00Z\",compiler=\"rustc\"",
        "kubernetes_feature_enabled{name=\"StorageVersionAPI\",stage=\"ALPHA\"} 1\n",
        "apiserver_storage_objects{resource=\"deployments.apps\"} 7\n",
        "apiserver_resource_objects{group=\"apps\",resource=\"deployments\"} 7\n",
        "apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} 4096\n",
        "etcd_request_duration_seconds_bucket{group=\"\",operation=\"get\",resource=\"pods\",le=\"0.05\"} 1\n",
        "etcd_request_duration_seconds_count{group=\"\",operation=\"get\",resource=\"pods\"} 1\n",
        "# TYPE apiserver_watch_events_total counter\n",
        "apiserver_watch_events_total{group=\"\",resource=\"pods\",version=\"v1\"} 1\n",
        "apiserver_watch_events_sizes_bucket{group=\"\",resource=\"pods\",version=\"v1\",le=\"2048\"} 1\n",
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1\n",
        "apiserver_current_inflight_requests{request_kind=\"mutating\"} 0\n",
        "authentication_attempts{result=\"failure\"} 1\n",
        "authentication_duration_seconds_count{result=\"failure\"} 1\n",
        "authorization_attempts_total{result=\"allowed\"} 1\n",
        "authorization_duration_seconds_count{result=\"allowed\"} 1\n",
        "apiserver_impersonation_attempts_total{decision=\"allowed\",mode=\"user-info\"} 1\n",
        "apiserver_cel_compilation_duration_seconds_bucket{le=\"0.005\"} 1\n",
        "apiserver_cel_evaluation_duration_seconds_count 1\n",
        "workqueue_adds_total{name=\"tokens\"} 2\n",
        "workqueue_depth{name=\"tokens\"} 2\n",
        "workqueue_retries_total{name=\"tokens\"} 1\n",
        "workqueue_queue_duration_seconds_count{name=\"tokens\"} 1\n",
        "workqueue_work_duration_seconds_count{name=\"tokens\"} 1\n",
        "rest_client_requests_total{code=\"200\",host=\"hook.example.com:8443\",method=\"POST\"} 1\n",
        "rest_client_requests_total{code=\"<error>\",host=\"hook.example.com:8443\",method=\"POST\"} 1\n",
        "rest_client_request_duration_seconds_count{host=\"hook.example.com:8443\",verb=\"POST\"} 2\n",
        "rest_client_request_size_bytes_sum{host=\"hook.example.com:8443\",verb=\"POST\"} 100\n",
        "rest_client_response_size_bytes_sum{host=\"hook.example.com:8443\",verb=\"POST\"} 1000\n",
        "apiserver_tls_handshake_errors_total 0\n",
        "apiserver_rerouted_request_total{code=\"200\",group=\"batch\",resource=\"jobs\",version=\"v1\"} 1\n",
        "apiserver_peer_proxy_errors_total{group=\"\",resource=\"pods\",type=\"proxy_transport\",version=\"v1\"} 1\n",
        "apiserver_peer_discovery_sync_errors_total{type=\"fetch_discovery\"} 1\n",
        "aggregator_discovery_aggregation_count_total 1\n",
        "aggregator_discovery_peer_aggregated_cache_hits_total 1\n",
        "aggregator_discovery_peer_aggregated_cache_misses_total 0\n",
        "aggregator_discovery_nopeer_requests_total 1\n",
        "concord_peers{state=\"fresh\"} 2\n",
        "aggregator_unavailable_apiservice{name=\"v1.example.com\"} 1\n",
        "aggregator_unavailable_apiservice{name=\"v2.example.com\"} 0\n# ",
        "aggregator_unavailable_apiservice_total{name=\"v1.example.com\",reason=\"FailedDiscoveryCheck\"} 1\n",
        "process_start_time_seconds ",
    ] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
    drop(running);
}
