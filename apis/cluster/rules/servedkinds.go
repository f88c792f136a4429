package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// maxServedKinds is how long what a cluster reports of its kinds may be: the hub keeps it of every cluster.
const maxServedKinds = 32 << 10

// tooManyKinds is what a cluster reports whose kinds there is no room for: what it has reported before counts no more.
const tooManyKinds = "too many kinds to report"

// anyKind stands for the kinds of a version that are not known, as where an aggregated API server is away.
const anyKind = "*"

// ServedKinds are the kinds that can be created in a cluster, by group and version as in apiVersion.
type ServedKinds map[string][]string

// AddUnknown adds a version of which it is not known which kinds it has.
func (s ServedKinds) AddUnknown(groupVersion string) { s[groupVersion] = []string{anyKind} }

// Report returns the value of the property that tells the hub, which is the same for the same kinds: a digest, a semicolon, and the kinds
// of each version. If there are too many kinds to report, it says so, and the hub does not know them. It is empty if none was found.
func (s ServedKinds) Report() string {
	var versions []string
	for _, version := range slices.Sorted(maps.Keys(s)) {
		kinds := slices.Clone(s[version])
		slices.Sort(kinds)
		if kinds = slices.Compact(kinds); len(kinds) > 0 {
			versions = append(versions, version+"="+strings.Join(kinds, ","))
		}
	}
	text := strings.Join(versions, ";")
	switch {
	case text == "":
		return ""
	case len(text) > maxServedKinds:
		return tooManyKinds
	}
	return digestOfKinds(text) + ";" + text
}

// Serves reports whether a kind can be created in the cluster, as far as is known.
func (s ServedKinds) Serves(kind schema.GroupVersionKind) bool {
	kinds := s[kind.GroupVersion().String()]
	return slices.Contains(kinds, kind.Kind) || slices.Contains(kinds, anyKind)
}

// ServedKindsOf returns the kinds that a cluster has reported, and whether they are known. An older agent reports none, and what is not as
// this product writes it counts for nothing.
func ServedKindsOf(cluster *clusterv1beta1.MemberCluster) (served ServedKinds, known bool) {
	value := cluster.Status.Properties[clusterv1beta1.ServedKindsProperty].Value
	digest, text, _ := strings.Cut(value, ";")
	if text == "" || len(text) > maxServedKinds || digest != digestOfKinds(text) {
		return nil, false
	}
	served = ServedKinds{}
	for version := range strings.SplitSeq(text, ";") {
		name, kinds, _ := strings.Cut(version, "=")
		served[name] = strings.Split(kinds, ",")
	}
	return served, true
}

func digestOfKinds(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
