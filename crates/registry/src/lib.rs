//! Resources and what their verbs mean, on the log and without HTTP.
