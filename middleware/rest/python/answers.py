"""Server and pong: a Flask application with one route."""

from __future__ import annotations

from importlib.metadata import version

import flask
from bodies import content_type, decoded, encoded
from wattwire_kit import UNREADABLE, Kit
from wattwire_kit.forked import Processes
from wattwire_web import python_build, serve

PATH = "/echo"


def server(kit: Kit) -> None:
    def application(processes: Processes) -> flask.Flask:
        app = flask.Flask("echo")

        @app.post(PATH)
        def echo() -> flask.Response:
            body = flask.request.get_data()
            if len(body) < (flask.request.content_length or 0):
                # The client closed the connection; gunicorn passes on the partial body.
                return flask.Response(status=400)
            request = decoded(kit, body)
            reply = processes.serve(request)
            if reply is None:
                return flask.Response(status=400 if request is UNREADABLE else 409)
            response = flask.Response(encoded(reply), content_type=content_type(kit))
            kit.served()
            return response

        return app

    serve(kit, PATH, application, ("Flask", version("flask"), python_build()))
