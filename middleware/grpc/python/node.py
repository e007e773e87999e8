"""gRPC node: grpcio, its thread pool server and its stubs."""

from wattwire_kit import run

run(
    client="calls:client",
    server="answers:server",
    ping="calls:client",
    pong="answers:server",
)
