"""Where pending pods wait, who is next, and which events bring a rejected pod back."""
