"""Places where runs execute. `base` has the protocol, one file per kind of pool beside it; no models, no Django."""
