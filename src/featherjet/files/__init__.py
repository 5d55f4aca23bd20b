"""Files that featherjet reads and writes: arrays (.npz), tables (.csv), motion capture (.bvh)."""
