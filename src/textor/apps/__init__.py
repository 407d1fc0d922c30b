"""Programs with their own user interface, each its own process, and the SDK that makes one."""
