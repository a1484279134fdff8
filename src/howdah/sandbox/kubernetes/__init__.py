"""A real Kubernetes on this machine for trying and testing: its own daemons and nodes, in namespaces of their own."""
