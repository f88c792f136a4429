package snapshot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/apis/clusterowned"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
)

// PartLimit is how much JSON one snapshot object holds, in bytes. A single object
// that is larger gets a snapshot object of its own.
const PartLimit = 800 * 1024

// ObjectLimit is how large an object may be, in bytes of JSON after stripping. etcd
// takes requests of 1.5 MiB, in which a snapshot and a Work need some room for
// themselves.
const ObjectLimit = 1_500_000

// Content is what a snapshot holds, in order: one JSON document per object.
type Content struct {
	Manifests [][]byte
	// Hash tells contents apart. It is the one that KubeFleet states for the same content.
	Hash string
	// Envelopes is how many of the objects are envelopes.
	Envelopes int
	// Replicas is how many replicas workloads ask for that are divided over clusters, as a snapshot notes it.
	Replicas string
}

// Divide notes what workloads ask for whose replicas are divided over clusters. It is no part of what tells contents apart: a change
// of it moves replicas, and brings no cluster another version.
func (c *Content) Divide(demands []rules.ReplicaDemand) error {
	c.Replicas = rules.EncodeReplicaCounts(demands)
	if c.Replicas == "" {
		return nil
	}
	without, err := rules.WithoutReplicas(c.Manifests, demands)
	c.Hash = Hash(without)
	return err
}

// NewContent orders and hashes what was selected.
func NewContent(selected []Item) Content {
	items := slices.DeleteFunc(slices.Clone(selected), func(item Item) bool { return item.Manifest == nil })
	sortByPlace(items, func(item *Item) place {
		return placeOf(item.Kind, item.apiVersion, item.Namespace, item.Name)
	})
	content := Content{}
	for i := range items {
		if items[i].Envelope {
			content.Envelopes++
		}
		content.Manifests = append(content.Manifests, items[i].Manifest)
	}
	content.Hash = Hash(content.Manifests)
	return content
}

// Size returns how many bytes of JSON the objects are.
func (c Content) Size() int64 {
	size := int64(0)
	for _, manifest := range c.Manifests {
		size += int64(len(manifest))
	}
	return size
}

// FormatBytes writes a number of bytes for people.
func FormatBytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// Hash returns the SHA-256 of what the spec of a snapshot with these manifests is as JSON, in hexadecimal digits.
func Hash(manifests [][]byte) string {
	digest := sha256.New()
	// Writing to a hash never fails.
	_, _ = io.WriteString(digest, `{"selectedResources":[`)
	for i, manifest := range manifests {
		if i > 0 {
			_, _ = io.WriteString(digest, ",")
		}
		digest.Write(manifest)
	}
	_, _ = io.WriteString(digest, "]}")
	return hex.EncodeToString(digest.Sum(nil))
}

// SameObjects reports whether two lists of manifests hold the same objects, whatever their order and however they are written.
func SameObjects(a, b [][]byte) (bool, error) {
	first, err := canonicalObjects(a)
	if err != nil {
		return false, err
	}
	second, err := canonicalObjects(b)
	return slices.Equal(first, second), err
}

// canonicalObjects returns the objects in manifests without what is true on the hub only, in a canonical form and order.
func canonicalObjects(manifests [][]byte) ([]string, error) {
	objects := make([]string, 0, len(manifests))
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(manifest); err != nil {
			return nil, fmt.Errorf("decoding a stored object: %w", err)
		}
		canonical, err := json.Marshal(Strip(object).Object)
		if err != nil {
			return nil, fmt.Errorf("encoding a stored object: %w", err)
		}
		objects = append(objects, string(canonical))
	}
	slices.Sort(objects)
	return objects, nil
}

// Split divides manifests into parts of at most limit bytes each, keeping their
// order. There is always at least one part, if only an empty one.
func Split(manifests [][]byte, limit int) [][][]byte {
	parts := [][][]byte{nil}
	size := 0
	for _, manifest := range manifests {
		last := len(parts) - 1
		if len(parts[last]) > 0 && size+len(manifest) > limit {
			parts = append(parts, nil)
			last = last + 1
			size = 0
		}
		parts[last] = append(parts[last], manifest)
		size += len(manifest)
	}
	return parts
}

// Identity is one version of one object.
type Identity struct {
	schema.GroupKind
	Namespace, Name string
	UID             types.UID
	Version         string
}

// Identify reads the identity of an object of a kind.
func Identify(gk schema.GroupKind, object metav1.Object) Identity {
	return Identity{
		GroupKind: gk, Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: object.GetUID(), Version: Version(gk, object),
	}
}

// everyWrite are kinds that have a generation and of which every write counts all
// the same.
var everyWrite = map[schema.GroupKind]bool{
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: true, // its generation never moves
	DefinitionKind: true, // its status says what the hub serves
}

// uncounted are kinds that have a status which controllers write, some all the time,
// but no generation that would tell such a write from a change of what is wanted.
var uncounted = map[schema.GroupKind]bool{
	{Kind: "Service"}:                                       true,
	{Kind: "ResourceQuota"}:                                 true,
	{Kind: "PersistentVolume"}:                              true,
	{Kind: "PersistentVolumeClaim"}:                         true,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:   true,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:     true,
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:       true,
}

// Uncounted reports whether only the content of objects of a kind tells whether a write was
// about more than their status: to know, one has to watch all of it.
func Uncounted(gk schema.GroupKind) bool { return uncounted[gk] }

// Version tells those states of an object apart that a snapshot can tell apart, as
// far as its metadata shows. Where the object counts the generations of what is
// wanted, a change of status is none: some report progress there all the time. Of an
// uncounted kind it takes the content for that.
func Version(gk schema.GroupKind, object metav1.Object) string {
	if object.GetGeneration() == 0 || everyWrite[gk] {
		content, ok := object.(*unstructured.Unstructured)
		if !ok || !uncounted[gk] {
			return object.GetResourceVersion()
		}
		return contentVersion(content)
	}
	annotations := maps.Clone(object.GetAnnotations())
	for _, key := range clusterowned.Bookkeeping {
		delete(annotations, key)
	}
	// Strings always encode, and the keys of maps in order.
	metadata, _ := json.Marshal([]any{object.GetLabels(), annotations, object.GetFinalizers()})
	sum := sha256.Sum256(metadata)
	return fmt.Sprintf("%d/%s", object.GetGeneration(), hex.EncodeToString(sum[:8]))
}

// contentVersion tells the contents of an object apart.
func contentVersion(object *unstructured.Unstructured) string {
	manifest, err := json.Marshal(Strip(object).Object)
	if err != nil { // nothing an API server ever sends
		return object.GetResourceVersion()
	}
	sum := sha256.Sum256(manifest)
	return "content/" + hex.EncodeToString(sum[:8])
}

// Fingerprint tells sets of candidate objects apart by their versions, without
// their content. The same set has the same fingerprint in any order, and however
// often an object is in it.
func Fingerprint(candidates []Identity) string {
	sorted := slices.Clone(candidates)
	slices.SortFunc(sorted, func(a, b Identity) int {
		return cmp.Or(
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.UID, b.UID), cmp.Compare(a.Version, b.Version),
		)
	})
	digest := sha256.New()
	for _, c := range slices.Compact(sorted) {
		// Writing to a hash never fails.
		_, _ = io.WriteString(digest, fmt.Sprintf("%s %s %s/%s %s %s\n", c.Group, c.Kind, c.Namespace, c.Name, c.UID, c.Version))
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}
