//! Structural schemas of custom resources: checked, compiled, and applied to objects.
