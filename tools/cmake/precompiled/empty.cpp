// A target has a source, and the precompiled headers are made for targets.
