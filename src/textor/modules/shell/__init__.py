"""The module `shell`: programs in terminals that stay (`python -m textor.modules.shell`)."""
