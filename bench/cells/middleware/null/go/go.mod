module node

go 1.25

require wattwire v0.0.0

// The kit lies here as _kit when the cell is built.
replace wattwire => ./_kit
