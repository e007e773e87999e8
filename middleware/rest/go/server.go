package main

import (
	"io"
	"net/http"
	"runtime"

	"wattwire"
	"wattwire/web"
)

func server(kit *wattwire.Kit) {
	isRecord, contentType := bodies(kit)
	if workers := kit.Spec.Settings.Integer("server_workers"); workers > 0 {
		runtime.GOMAXPROCS(int(workers)) // a goroutine answers each request, so many at once
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /echo", func(response http.ResponseWriter, r *http.Request) {
		request, err := io.ReadAll(r.Body)
		if err != nil { // the client closed the connection, so the request has not arrived
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		if isRecord {
			request, err = decoded(request) // nil if it is not a record
		}
		answered := kit.Serve(request, func(reply []byte) error {
			if isRecord {
				if reply, err = encoded(reply); err != nil {
					return err
				}
			}
			response.Header().Set("Content-Type", contentType)
			_, err := response.Write(reply)
			return err
		})
		if !answered && err != nil {
			response.WriteHeader(http.StatusBadRequest)
		} else if !answered {
			response.WriteHeader(http.StatusConflict)
		}
	})
	own := web.Listen(kit.Spec)
	https := kit.Spec.TLSAuthority != ""
	answering := http.Server{Handler: mux}
	effective := map[string]any{"tls": "none", "http_version": "1.1"}
	scheme := "http://"
	if https {
		scheme, effective["tls"] = "https://", "TLS 1.2 to TLS 1.3"
	}
	if asksFor(kit, "2") || https && asksFor(kit, "default") {
		effective["http_version"] = "2"
	}
	if asksFor(kit, "2") {
		answering.Protocols = new(http.Protocols)
		answering.Protocols.SetHTTP1(true)
		answering.Protocols.SetHTTP2(true)
		answering.Protocols.SetUnencryptedHTTP2(true)
	}
	go func() {
		defer wattwire.Guard()
		if https {
			wattwire.Check(answering.ServeTLS(own, kit.Spec.TLSCertificate, kit.Spec.TLSKey))
		}
		wattwire.Check(answering.Serve(own))
	}()
	wattwire.Listening(scheme + own.Addr().String() + "/echo")
	ready(kit, nil, effective)
	kit.Drain()
}
