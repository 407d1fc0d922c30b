"""The tree of agents: calls, types, the scope of an action, finding and asking."""
