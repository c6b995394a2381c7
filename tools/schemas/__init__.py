"""What documents hold, key by key; tools/make_schemas.py writes it down as JSON Schema."""
