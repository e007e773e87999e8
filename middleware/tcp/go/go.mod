module node

go 1.25

require wattwire v0.0.0

// The build copies the kit to _kit.
replace wattwire => ./_kit
