"""Other conventions than Pinocchio's: coordinates, velocities, and how every quantity reads in them."""
