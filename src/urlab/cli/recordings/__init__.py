"""Commands about saved recordings, which need no server: `replay` makes films, `export` files for other tools."""
