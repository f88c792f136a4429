package snapshot

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Flags of the hub agent that keep more from being placed than what is never placed
// anyway. Messages name them.
const (
	SkippedAPIsFlag       = "skipped-propagating-apis"
	AllowedAPIsFlag       = "allowed-propagating-apis"
	SkippedNamespacesFlag = "skipped-propagating-namespaces"
	PlaceableFlag         = "placeable-namespaces"
	EnableWorkloadFlag    = "enable-workload"
)

// FilterOptions are the values of those flags.
type FilterOptions struct {
	// SkippedAPIs and AllowedAPIs are entries separated by semicolons: <group>,
	// <group>/<version> or <group>/<version>/<kind>,<kind>. Only one of them is given.
	SkippedAPIs, AllowedAPIs string
	// SkippedNamespaces are names separated by commas or semicolons.
	SkippedNamespaces string
	// PlaceableNamespaces are the only namespaces from which something is placed, separated by
	// commas or semicolons; empty for all. Nothing cluster-scoped is placed then, but them.
	PlaceableNamespaces string
	// Workload says that the hub runs workloads of its own.
	Workload bool
}

// Filter is what the operator of a hub keeps from being placed, or lets be placed, on
// top of what is never placed. The zero value keeps nothing.
type Filter struct {
	skipped, allowed []apiEntry
	namespaces       map[string]bool
	// placeable are the only namespaces from which something is placed, sorted; empty for all.
	placeable []string
	workload  bool
}

// apiEntry is one entry of the list of APIs; an empty version or kind stands for all.
type apiEntry struct{ group, version, kind string }

// NewFilter reads the flags. The error names the flag, the entry and what is allowed.
func NewFilter(o FilterOptions) (Filter, error) {
	f := Filter{workload: o.Workload}
	var err error
	if f.skipped, err = parseAPIs(o.SkippedAPIs); err != nil {
		return Filter{}, fmt.Errorf("--%s: %w", SkippedAPIsFlag, err)
	}
	if f.allowed, err = parseAPIs(o.AllowedAPIs); err != nil {
		return Filter{}, fmt.Errorf("--%s: %w", AllowedAPIsFlag, err)
	}
	if len(f.skipped) > 0 && len(f.allowed) > 0 {
		return Filter{}, fmt.Errorf("--%s and --%s exclude each other: name either what may not be placed or all that may", SkippedAPIsFlag,
			AllowedAPIsFlag)
	}
	if f.namespaces, err = parseNamespaces(SkippedNamespacesFlag, o.SkippedNamespaces); err != nil {
		return Filter{}, err
	}
	placeable, err := parseNamespaces(PlaceableFlag, o.PlaceableNamespaces)
	if err != nil {
		return Filter{}, err
	}
	f.placeable = slices.Sorted(maps.Keys(placeable))
	for _, name := range f.placeable {
		if ReservedNamespace(name) || f.namespaces[name] {
			return Filter{}, fmt.Errorf("--%s names %q, from which nothing is ever placed: namespaces named default, kube-* and fleet-* are reserved, and --%s keeps others back", PlaceableFlag, name, SkippedNamespacesFlag)
		}
	}
	return f, nil
}

// parseNamespaces reads the names in a flag.
func parseNamespaces(flag, text string) (map[string]bool, error) {
	names := map[string]bool{}
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' }) {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("--%s: %q is no name of a namespace: %s", flag, name, problems[0])
		}
		names[name] = true
	}
	return names, nil
}

// Empty reports whether the filter keeps nothing from being placed.
func (f Filter) Empty() bool {
	return len(f.skipped)+len(f.allowed)+len(f.namespaces)+len(f.placeable) == 0 && !f.workload
}

// SkipsNamespace reports whether a namespace and all in it are kept from being placed.
func (f Filter) SkipsNamespace(name string) bool { return f.namespaces[name] }

// PlaceableNamespaces returns the only namespaces from which something is placed; empty for all.
func (f Filter) PlaceableNamespaces() []string { return f.placeable }

// refuseElsewhere returns which namespace an object must be in that is placed, if there is a restriction and the namespace is
// not one of them; an empty string otherwise.
func (f Filter) refuseElsewhere(namespace string) string {
	if len(f.placeable) == 0 || slices.Contains(f.placeable, namespace) {
		return ""
	}
	return fmt.Sprintf("the hub agent's flag --%s lets placements select from %s only", PlaceableFlag, strings.Join(f.placeable, ", "))
}

// refuseTerm returns why a selector over a cluster-scoped kind is beyond the namespaces from which something is placed; an
// empty string if it is not.
func (f Filter) refuseTerm(gk schema.GroupKind, name string, scope placementv1beta1.SelectionScope) string {
	switch {
	case len(f.placeable) == 0:
		return ""
	case gk != NamespaceKind:
		return f.refuseElsewhere("") + ", and it is in none: remove the selector, or have the flag changed"
	case name == "":
		return f.refuseElsewhere("") + ": select namespaces by name"
	case f.refuseElsewhere(name) != "":
		return f.refuseElsewhere(name) + ": remove the selector, or have the flag changed"
	case scope != placementv1beta1.NamespaceOnly:
		return fmt.Sprintf("with --%s the hub agent places the Namespace alone: set selectionScope to %s, and have what is in it placed by a ResourcePlacement there",
			PlaceableFlag, placementv1beta1.NamespaceOnly)
	}
	return ""
}

// reasonToExclude returns the flag that keeps a kind from being placed, in words, and an
// empty string if none does.
func (f Filter) reasonToExclude(gvk schema.GroupVersionKind) string {
	if f.workload && gvk.GroupKind() == volumeClaim {
		return "the hub agent's flag --" + EnableWorkloadFlag + " leaves to the workloads of the hub"
	}
	return f.excludedAPI(gvk)
}

// excludedAPI is reasonToExclude as far as the lists of APIs go.
func (f Filter) excludedAPI(gvk schema.GroupVersionKind) string {
	matches := func(e apiEntry) bool { return e.matchesKind(gvk) }
	switch {
	case slices.ContainsFunc(f.skipped, matches):
		return "the hub agent's flag --" + SkippedAPIsFlag + " names"
	case len(f.allowed) > 0 && !slices.ContainsFunc(f.allowed, matches):
		return "the hub agent's flag --" + AllowedAPIsFlag + " does not name"
	}
	return ""
}

// ReasonToExcludeEnveloped says in words which flag keeps an object of an envelope from being
// placed; an empty string if none does. What only the workloads of the hub make is left out:
// nothing makes an object in an envelope.
func (f Filter) ReasonToExcludeEnveloped(gvk schema.GroupVersionKind, name string) string {
	if gvk.GroupKind() == NamespaceKind && len(f.placeable) > 0 {
		return "a namespace, of which the hub agent's flag --" + PlaceableFlag + " lets none be in an envelope"
	}
	if gvk.GroupKind() == NamespaceKind && f.SkipsNamespace(name) {
		return "a namespace that the hub agent's flag --" + SkippedNamespacesFlag + " names"
	}
	if flag := f.excludedAPI(gvk); flag != "" {
		return "of a kind that " + flag
	}
	return ""
}

// volumeClaim is a kind that workloads make for themselves, without owning it.
var volumeClaim = schema.GroupKind{Kind: "PersistentVolumeClaim"}

func (e apiEntry) matchesKind(gvk schema.GroupVersionKind) bool {
	return e.group == gvk.Group &&
		(e.version == "" || e.version == gvk.Version) &&
		(e.kind == "" || e.kind == strings.ToLower(gvk.Kind))
}

// version is what tells v1/ConfigMap, of the core group, from apps/v1.
var version = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// apiFormats says what an entry may be.
const apiFormats = "allowed are <group>, <group>/<version> and <group>/<version>/<kind>,<kind>, without the group for the core group, separated by semicolons"

// parseAPIs reads entries separated by semicolons.
func parseAPIs(text string) ([]apiEntry, error) {
	var entries []apiEntry
	for token := range strings.SplitSeq(text, ";") {
		token = strings.TrimSpace(token)
		if token == "" {
			continue
		}
		parsed, err := parseAPI(token)
		if err != nil {
			return nil, fmt.Errorf("%q cannot be read: %w; %s", token, err, apiFormats)
		}
		entries = append(entries, parsed...)
	}
	return entries, nil
}

// parseAPI reads one entry, in which several kinds may share group and version.
func parseAPI(token string) ([]apiEntry, error) {
	first, more, several := strings.Cut(token, ",")
	entry, err := parseOne(first)
	if err != nil {
		return nil, err
	}
	entries := []apiEntry{entry}
	if !several {
		return entries, nil
	}
	if entry.kind == "" {
		return nil, fmt.Errorf("%q has no kind, so no other can follow after a comma", first)
	}
	for item := range strings.SplitSeq(more, ",") {
		next := apiEntry{group: entry.group, version: entry.version, kind: strings.ToLower(strings.TrimSpace(item))}
		if strings.Contains(item, "/") { // all of it once more
			if next, err = parseOne(item); err != nil {
				return nil, err
			}
		}
		if next.kind == "" {
			return nil, fmt.Errorf("%q is no kind", strings.TrimSpace(item))
		}
		if err := next.checkSyntax(); err != nil {
			return nil, err
		}
		entries = append(entries, next)
	}
	return entries, nil
}

// parseOne reads a group, a group and version, or both with a kind.
func parseOne(item string) (apiEntry, error) {
	segments := strings.Split(strings.ToLower(strings.TrimSpace(item)), "/")
	if version.MatchString(segments[0]) {
		segments = append([]string{""}, segments...) // the core group has no name
	}
	if len(segments) > 3 {
		return apiEntry{}, fmt.Errorf("%q has too many slashes", item)
	}
	if slices.Contains(segments[1:], "") {
		return apiEntry{}, fmt.Errorf("%q has nothing after a slash", item)
	}
	entry := apiEntry{group: segments[0]}
	if len(segments) > 1 {
		entry.version = segments[1]
	}
	if len(segments) > 2 {
		entry.kind = segments[2]
	}
	if entry.group == "" && entry.version == "" {
		return apiEntry{}, fmt.Errorf("%q is empty", item)
	}
	return entry, entry.checkSyntax()
}

// checkSyntax returns what in an entry cannot be a name; most often it is a typing error.
func (e apiEntry) checkSyntax() error {
	if problems := validation.IsDNS1123Subdomain(e.group); e.group != "" && len(problems) > 0 {
		return fmt.Errorf("%q is no API group", e.group)
	}
	if e.group == "" && !version.MatchString(e.version) {
		return fmt.Errorf("%q is no version of the core group", e.version)
	}
	if problems := validation.IsDNS1035Label(e.version); e.version != "" && len(problems) > 0 {
		return fmt.Errorf("%q is no version", e.version)
	}
	if problems := validation.IsDNS1035Label(e.kind); e.kind != "" && len(problems) > 0 {
		return fmt.Errorf("%q is no kind", e.kind)
	}
	return nil
}
