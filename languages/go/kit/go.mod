module wattwire

go 1.25
