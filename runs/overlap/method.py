"""How records are read and hashed, as a number: a change of it makes every version be read, and every pair be compared, anew."""

METHOD = 2
