"""What claims and volumes say of each other, and the CSI drivers that took old kinds over."""
