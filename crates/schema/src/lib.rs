//! What the fields of a kind are: one compiled form for strict decoding, patches and server-side apply.
