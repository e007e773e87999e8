package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"wattwire"
	"wattwire/web"
)

// transport returns the library's default transport, changed by the settings.
func transport(kit *wattwire.Kit) *http.Transport {
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.Proxy = nil // ignores the environment (C-01)
	dial := own.DialContext
	own.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn, web.Prepare(kit.Spec, conn)
	}
	switch kit.Spec.Settings.Text("keep_alive") {
	case "on": // as many as there are calls at once, not two
		own.MaxIdleConnsPerHost = kit.Workers
	case "off":
		own.DisableKeepAlives = true
	}
	if !asksFor(kit, "default") {
		own.Protocols = new(http.Protocols)
		own.Protocols.SetHTTP1(asksFor(kit, "1.1"))
		own.Protocols.SetHTTP2(asksFor(kit, "2"))
		own.Protocols.SetUnencryptedHTTP2(asksFor(kit, "2"))
	}
	if trust := web.Trust(kit.Spec, ""); trust != nil {
		own.TLSClientConfig = trust
	}
	return own
}

func client(kit *wattwire.Kit) {
	isRecord, contentType := bodies(kit)
	own, url := http.Client{Transport: transport(kit)}, web.Endpoint(kit.Spec, "a URL")
	effective := map[string]any{"tls": "none"}
	post := func(body []byte, timeout time.Duration) ([]byte, *http.Response, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, "POST", url, bytes.NewReader(body))
		if err != nil {
			return nil, nil, err
		}
		request.Header.Set("Content-Type", contentType)
		response, err := own.Do(request)
		if err != nil {
			return nil, nil, err
		}
		defer response.Body.Close()
		found, err := io.ReadAll(response.Body)
		return found, response, err
	}
	call := func(message []byte, timeout time.Duration) ([]byte, error) {
		body := bytes.Clone(message) // the library may still read it after a timeout
		if isRecord {
			var err error
			if body, err = encoded(message); err != nil {
				return nil, err
			}
		}
		found, response, err := post(body, timeout)
		if err != nil {
			return nil, err
		}
		if effective["http_version"] == nil { // set by the first probe
			effective["http_version"] = map[int]string{1: "1.1", 2: "2"}[response.ProtoMajor]
			if response.TLS != nil {
				effective["tls"] = tls.VersionName(response.TLS.Version)
			}
		}
		if response.StatusCode != http.StatusOK {
			return nil, errors.New("HTTP status " + response.Status)
		}
		if isRecord {
			return decodedReply(found), nil
		}
		return found, nil
	}
	discoveryNs := kit.Probe(call)
	ready(kit, &discoveryNs, effective)
	kit.Calls(call)
}

// decodedReply returns nil if the body is not a record; the kit counts such a reply as corrupt.
func decodedReply(body []byte) []byte {
	reply, err := decoded(body)
	if err != nil {
		return nil
	}
	return reply
}
