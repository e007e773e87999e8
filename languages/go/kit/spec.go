package wattwire

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// specField is a key of a spec and a pointer to the field for its value.
type specField struct {
	key   string
	value any
}

// SpecError reports the key of a spec that the node cannot read, and the reason.
type SpecError struct {
	Key, Reason string
}

func (e *SpecError) Error() string { return e.Key + ": " + e.Reason }

// ReadSpec reads a spec. The harness has checked its values; the node checks their types (C-02).
// The error for an invalid spec is a *SpecError.
func ReadSpec(path string, settings []string) (*Spec, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &SpecError{"--spec", err.Error()}
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil || values == nil {
		return nil, &SpecError{"--spec", fmt.Sprintf("%s is not a JSON object: %v", path, err)}
	}
	spec := &Spec{Settings: Settings{}}
	for _, field := range spec.fields() {
		value, present := values[field.key]
		if !present || string(value) == "null" {
			return nil, &SpecError{field.key, "no value"}
		}
		if err := json.Unmarshal(value, field.value); err != nil {
			return nil, &SpecError{field.key, err.Error()}
		}
	}
	if spec.Contract != contractVersion {
		reason := fmt.Sprintf("found %d; allowed: %d", spec.Contract, contractVersion)
		return nil, &SpecError{"contract", reason}
	}
	if err := spec.checkAddresses(); err != nil {
		return nil, err
	}
	for key, value := range values {
		name, isSetting := strings.CutPrefix(key, "settings.")
		if !isSetting {
			continue
		}
		if !slices.Contains(settings, name) {
			return nil, &SpecError{key, fmt.Sprintf("unknown; the settings are %v", settings)}
		}
		var setting any
		if err := json.Unmarshal(value, &setting); err != nil {
			return nil, &SpecError{key, err.Error()}
		}
		spec.Settings[name] = setting
	}
	return spec, nil
}

// checkAddresses checks that the addresses of the host and of the peers are IPv4 addresses (C-38).
func (s *Spec) checkAddresses() error {
	if !isIPv4(s.HostAddress) {
		return &SpecError{"host.address", fmt.Sprintf(addressReason, s.HostAddress)}
	}
	for _, address := range s.PeersAddresses {
		if !isIPv4(address) {
			return &SpecError{"peers.addresses", fmt.Sprintf(addressReason, address)}
		}
	}
	return nil
}

const addressReason = "found %q; allowed: an IPv4 address"

func isIPv4(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Is4()
}

// Settings contains the values of the middleware's settings by name. Reading a setting that is
// missing or has another type ends the node.
type Settings map[string]any

// Text returns a setting that is a string.
func (s Settings) Text(name string) string { return setting[string](s, name) }

// Flag returns a setting that is true or false.
func (s Settings) Flag(name string) bool { return setting[bool](s, name) }

// Integer returns a setting that is a number.
func (s Settings) Integer(name string) int64 { return int64(setting[float64](s, name)) }

func setting[T any](settings Settings, name string) T {
	value, hasType := settings[name].(T)
	if !hasType {
		Fail(BadSpec, "settings."+name, "found %v; allowed: a %T", settings[name], value)
	}
	return value
}
