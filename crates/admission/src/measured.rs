use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use concord_meta::Status;
use concord_registry::{Admission, Attributes, Guard, Object};
use concord_replica::Snapshot;
use concord_server::{AdmissionStep, Metrics, PluginMetrics};

use crate::rule::operation_name;

/// All plugins of a server as one, each asked in its turn, which counts how long they take.
pub struct MeasuredAdmission {
    plugins: Vec<(Arc<dyn Admission>, PluginMetrics)>,
    metrics: Arc<Metrics>,
}

impl MeasuredAdmission {
    /// These plugins, in this order.
    pub fn new(plugins: Vec<Arc<dyn Admission>>, metrics: Arc<Metrics>) -> Self {
        let measured = plugins.into_iter().map(|plugin| {
            let of_plugin = metrics.admission().plugin(plugin.name());
            (plugin, of_plugin)
        });
        Self { plugins: measured.collect(), metrics }
    }

    fn done(&self, step: &'static str, attributes: &Attributes<'_>, rejected: bool, time: Duration) {
        let operation = operation_name(attributes.operation);
        self.metrics.admission().step(AdmissionStep { name: "", step, operation }, rejected, time);
    }
}

#[async_trait]
impl Admission for MeasuredAdmission {
    fn name(&self) -> &'static str {
        "all"
    }

    async fn admit(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Object>,
    ) -> Result<(), Status> {
        let operation = operation_name(attributes.operation);
        let begun = Instant::now();
        let mut before = begun;
        let mut result = Ok(());
        for (plugin, metrics) in &self.plugins {
            result = plugin.admit(attributes, object.as_deref_mut()).await;
            let now = Instant::now();
            metrics.observe("admit", operation, result.is_err(), now - before);
            before = now;
            if result.is_err() {
                break;
            }
        }
        self.done("admit", attributes, result.is_err(), before - begun);
        result
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Object>) -> Result<(), Status> {
        let operation = operation_name(attributes.operation);
        let begun = Instant::now();
        let mut before = begun;
        let mut result = Ok(());
        for (plugin, metrics) in &self.plugins {
            result = plugin.validate(attributes, object).await;
            let now = Instant::now();
            metrics.observe("validate", operation, result.is_err(), now - before);
            before = now;
            if result.is_err() {
                break;
            }
        }
        self.done("validate", attributes, result.is_err(), before - begun);
        result
    }

    fn guard(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Object>,
        snapshot: &Snapshot,
    ) -> Result<Guard, Status> {
        let mut all = Guard::default();
        for (plugin, _) in &self.plugins {
            all.extend(plugin.guard(attributes, object, snapshot)?);
        }
        Ok(all)
    }

    fn removal(&self, attributes: &Attributes<'_>, snapshot: &Snapshot) -> Result<Guard, Status> {
        let mut all = Guard::default();
        for (plugin, _) in &self.plugins {
            all.extend(plugin.removal(attributes, snapshot)?);
        }
        Ok(all)
    }
}
