"""Server and pong: a Flask application whose methods Flask-JSONRPC dispatches."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import flask
from flask_jsonrpc import JSONRPC
from flask_jsonrpc.exceptions import InvalidParamsError, ServerError
from wattwire_kit import UNREADABLE, Kit, Record
from wattwire_kit.forked import Processes
from wattwire_web import python_build, serve

PATH = "/api"


def server(kit: Kit) -> None:
    def application(processes: Processes) -> flask.Flask:
        app = flask.Flask("echo")
        rpc = JSONRPC(app, PATH)

        def answered(request: Any) -> Any:
            reply = processes.serve(request)
            if request is UNREADABLE:
                raise InvalidParamsError(message="no record")
            if reply is None:
                raise ServerError(message="a request of another run")
            return reply

        @rpc.method("echo")
        def echo(data: str) -> str:
            result = answered(data).decode()
            kit.served()
            return result

        @rpc.method("echo_record")
        def echo_record(record: dict[str, Any]) -> dict[str, Any]:
            result = answered(Record.from_object(record)).to_dict()
            kit.served()
            return result

        return app

    serve(kit, PATH, application, ("Flask-JSONRPC", version("flask-jsonrpc"), python_build()))
