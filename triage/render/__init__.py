"""Values into text, JSON and Markdown; prints nothing."""
