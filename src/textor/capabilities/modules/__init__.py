"""Modules: separate processes that serve capabilities over MCP, started, watched and ended by us."""
