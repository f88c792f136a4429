package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetflow/fleetflow/controllers/member/propertyprovider"
)

// noProvider is for an agent that reports what it finds itself.
const noProvider = "none"

// providers are the property providers built into this agent, by the name that --property-provider gives them. A
// platform that has one adds it here.
var providers = map[string]func() propertyprovider.PropertyProvider{}

// newProvider returns the provider of a name; nil for none.
func newProvider(name string) (propertyprovider.PropertyProvider, error) {
	if name == noProvider {
		return nil, nil // none is a choice, not a failure
	}
	create, known := providers[name]
	if !known {
		names := append([]string{noProvider}, slices.Sorted(maps.Keys(providers))...)
		return nil, fmt.Errorf("--property-provider is %q; this agent has %s", name, strings.Join(names, ", "))
	}
	return create(), nil
}
