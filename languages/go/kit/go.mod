module wattwire

go 1.19
