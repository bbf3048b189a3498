"""Wire formats of providers (dialects, pure functions) and what is known of vendors (presets)."""
