package wattwire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
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

const (
	settingPrefix = "settings."
	allowedPrefix = "declared.allowed."
)

// specValues are the values of a spec by key.
type specValues map[string]json.RawMessage

// read stores the value of a key in target, which determines its type.
func (v specValues) read(key string, target any) error {
	value, present := v[key]
	if !present || string(value) == "null" {
		return &SpecError{key, "no value"}
	}
	if err := json.Unmarshal(value, target); err != nil {
		return &SpecError{key, err.Error()}
	}
	return nil
}

// ReadSpec reads a spec. The harness has checked its values; the node checks their types (C-02).
// The error for an invalid spec is a *SpecError.
func ReadSpec(path string) (*Spec, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &SpecError{"--spec", err.Error()}
	}
	var values specValues
	if err := json.Unmarshal(text, &values); err != nil || values == nil {
		return nil, &SpecError{"--spec", fmt.Sprintf("%s is not a JSON object: %v", path, err)}
	}
	if found := string(values["contract"]); found != strconv.Itoa(contractVersion) {
		reason := fmt.Sprintf("found %s; allowed: %d", found, contractVersion)
		return nil, &SpecError{"contract", reason}
	}
	spec := &Spec{Settings: Settings{}}
	for _, field := range spec.fields() {
		if err := values.read(field.key, field.value); err != nil {
			return nil, err
		}
	}
	if err := spec.checkAddresses(); err != nil {
		return nil, err
	}
	return spec, spec.readSettings(values)
}

// readSettings reads the declared settings. It refuses others.
func (s *Spec) readSettings(values specValues) error {
	names := slices.Concat(
		s.DeclaredStringSettings, s.DeclaredIntegerSettings, s.DeclaredBooleanSettings)
	for key := range values {
		name, isSetting := strings.CutPrefix(key, settingPrefix)
		if isSetting && !slices.Contains(names, name) {
			return &SpecError{key, fmt.Sprintf("unknown; the settings are %v", names)}
		}
	}
	return cmp.Or(
		readTyped[string](s, values, s.DeclaredStringSettings),
		readTyped[int64](s, values, s.DeclaredIntegerSettings),
		readTyped[bool](s, values, s.DeclaredBooleanSettings))
}

// readTyped reads the settings of one type, and notes those whose value is not supported.
func readTyped[T comparable](spec *Spec, values specValues, names []string) error {
	for _, name := range names {
		var value T
		if err := values.read(settingPrefix+name, &value); err != nil {
			return err
		}
		spec.Settings[name] = value
		if _, isLimited := values[allowedPrefix+name]; !isLimited {
			continue
		}
		var allowed []T
		if err := values.read(allowedPrefix+name, &allowed); err != nil {
			return err
		}
		if !slices.Contains(allowed, value) {
			reason := fmt.Sprintf("%s = %v (supported: %v)", name, value, allowed)
			spec.unsupported = append(spec.unsupported, reason)
		}
	}
	return nil
}

// sizes returns the declared bounds of payload.bytes for the encoding of the spec (C-03).
func (s *Spec) sizes() (least, most int64) {
	least, most = s.DeclaredPayloadBytesMin, s.DeclaredPayloadBytesMax
	switch s.PayloadEncoding {
	case "text":
		least *= 2
	case "record":
		least, most = 0, s.DeclaredRecordBytesMax
	}
	if s.PayloadLiteral != "" {
		least = 0
	}
	return least, most
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
func (s Settings) Integer(name string) int64 { return setting[int64](s, name) }

func setting[T any](settings Settings, name string) T {
	value, hasType := settings[name].(T)
	if !hasType {
		Fail(BadSpec, "settings."+name, "found %v; allowed: a %T", settings[name], value)
	}
	return value
}
