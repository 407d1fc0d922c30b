"""Modules in the box: MCP servers, each a process of its own that any MCP client can start."""
