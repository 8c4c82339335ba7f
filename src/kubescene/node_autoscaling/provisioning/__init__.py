"""ProvisioningRequests: room for pods that do not exist yet, asked for before they are created."""
