"""One file per namespace, one request/reply pair per op."""
