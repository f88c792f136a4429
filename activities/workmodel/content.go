package workmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Content is a resource snapshot sorted into what each Work carries: first the
// resources of each part, then those of each envelope. The envelopes themselves are
// carried by none.
type Content struct {
	parts   []placementv1beta1.ResourceSnapshotObject
	units   []workUnit
	invalid []*envelope.Error
	// held are the objects that overrides cannot be applied to.
	held []HeldObject
	// assigned are the replicas that the cluster is given, overridden those of them that overrides have changed.
	assigned   map[rules.Workload]placementv1beta1.ReplicaAssignment
	overridden []overriddenReplicas
	// objects are those of the units, read when an override first asks for them.
	objects func() ([][]*override.Object, error)
}

// workUnit is what one Work carries.
type workUnit struct {
	// part of the snapshot, by its index, that the resources are from.
	part int
	// envelope they were in; nil for those that are in the snapshot itself.
	envelope  *placementv1beta1.EnvelopeIdentifier
	manifests []placementv1beta1.Manifest
	// invalid says that the envelope cannot be unpacked. Its Work is needed and cannot
	// be written; one that an earlier snapshot has brought stays as it is.
	invalid bool
}

// InvalidError says that envelopes cannot be unpacked. Trying again does not help: only their authors can correct them, and that
// makes another snapshot.
type InvalidError struct {
	// Envelopes that are invalid, each with what is wrong.
	Envelopes []*envelope.Error
	// Outside is the first object that is not in the namespace of its placement; empty if there is none.
	Outside string
}

// Error names the envelopes, their keys and the rules that are broken.
func (e *InvalidError) Error() string {
	if e.Outside != "" {
		return "the snapshot holds " + e.Outside + ", and a ResourcePlacement brings what is in its own namespace only: nothing of the snapshot is placed; " +
			"delete the snapshot, and the hub agent makes a new one"
	}
	told := make([]string, 0, len(e.Envelopes))
	for _, invalid := range e.Envelopes {
		told = append(told, invalid.Error())
	}
	return strings.Join(told, "; ")
}

// NewContent sorts the parts of a snapshot, the master first. It does not change
// them. Override changes what comes of it for one cluster.
func NewContent(rules envelope.Rules, parts []placementv1beta1.ResourceSnapshotObject) *Content {
	c := &Content{parts: parts}
	var wrapped []workUnit
	for i := range parts {
		selected := parts[i].GetResourceSnapshotSpec().SelectedResources
		plain := workUnit{part: i, manifests: make([]placementv1beta1.Manifest, 0, len(selected))}
		for _, resource := range selected {
			if _, is := envelope.Identify(resource.Raw); is {
				wrapped = append(wrapped, workUnit{part: i, manifests: []placementv1beta1.Manifest{placementv1beta1.Manifest(resource)}})
				continue
			}
			plain.manifests = append(plain.manifests, placementv1beta1.Manifest(resource))
		}
		c.units = append(c.units, plain)
	}
	if len(wrapped) > 0 {
		c.addEnvelopes(rules.In(placementv1beta1.ScopeOf(parts[0])), wrapped)
	}
	c.objects = sync.OnceValues(func() ([][]*override.Object, error) { return readObjects(c.units) })
	return c
}

// CheckNamespace refuses the snapshot of a placement in a namespace if it holds anything else than what is in that namespace.
// Such a snapshot was never selected: it was written by hand, to reach what its author may not.
func CheckNamespace(parts []placementv1beta1.ResourceSnapshotObject) error {
	for _, part := range parts {
		if part.GetNamespace() == "" {
			continue
		}
		for _, resource := range part.GetResourceSnapshotSpec().SelectedResources {
			var head metav1.PartialObjectMetadata
			if err := json.Unmarshal(resource.Raw, &head); err != nil || head.Namespace != part.GetNamespace() {
				return &InvalidError{Outside: envelope.KeyOf(&head).String()}
			}
		}
	}
	return nil
}

// HasEnvelopes reports whether parts of a snapshot have an envelope among their resources.
func HasEnvelopes(parts []placementv1beta1.ResourceSnapshotObject) bool {
	return slices.ContainsFunc(parts, func(part placementv1beta1.ResourceSnapshotObject) bool {
		return slices.ContainsFunc(part.GetResourceSnapshotSpec().SelectedResources, func(resource placementv1beta1.ResourceContent) bool {
			_, is := envelope.Identify(resource.Raw)
			return is
		})
	})
}

// addEnvelopes adds a unit for each envelope.
func (c *Content) addEnvelopes(rules envelope.Rules, wrapped []workUnit) {
	taken := c.plainOwners()
	for _, p := range wrapped {
		id, entries, err := envelope.Unpack(p.manifests[0].Raw, rules)
		if err == nil {
			err = taken.claimObjects(id, entries)
		}
		p.envelope = &id
		p.invalid = err != nil
		if err != nil {
			c.invalid = append(c.invalid, asInvalid(id, err))
		} else {
			p.manifests = encodeManifests(entries)
		}
		c.units = append(c.units, p)
	}
}

func asInvalid(id placementv1beta1.EnvelopeIdentifier, err error) *envelope.Error {
	if invalid, ok := errors.AsType[*envelope.Error](err); ok {
		return invalid
	}
	return &envelope.Error{Envelope: id, Problems: []envelope.Problem{{Rule: err.Error()}}}
}

// encodeManifests writes objects down as manifests.
func encodeManifests(entries []envelope.Entry) []placementv1beta1.Manifest {
	manifests := make([]placementv1beta1.Manifest, 0, len(entries))
	for _, entry := range entries {
		raw, err := json.Marshal(entry.Object.Object)
		if err != nil {
			panic(err) // what was read from JSON can be written as JSON
		}
		manifests = append(manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return manifests
}

// owners tell what has an object already, in words. A member takes an object from
// one Work only.
type owners map[envelope.ObjectKey]string

// plainOwners returns those of the resources that are in no envelope.
func (c *Content) plainOwners() owners {
	taken := owners{}
	for _, p := range c.units {
		for _, manifest := range p.manifests {
			var head metav1.PartialObjectMetadata
			if err := json.Unmarshal(manifest.Raw, &head); err != nil {
				continue // not an object, so no other Work can have it
			}
			taken[envelope.KeyOf(&head)] = "selected by the placement itself"
		}
	}
	return taken
}

// claimObjects takes the objects of an envelope, unless one of them is taken.
func (o owners) claimObjects(id placementv1beta1.EnvelopeIdentifier, entries []envelope.Entry) error {
	var problems []envelope.Problem
	for _, entry := range entries {
		key := envelope.KeyOf(entry.Object)
		if holder, taken := o[key]; taken {
			problems = append(problems, envelope.Problem{
				Key: entry.Key, Rule: fmt.Sprintf("%s is %s as well: remove it from one of the two", key, holder),
			})
		}
	}
	if len(problems) > 0 {
		return &envelope.Error{Envelope: id, Problems: problems}
	}
	for _, entry := range entries {
		o[envelope.KeyOf(entry.Object)] = "in " + envelope.Describe(id)
	}
	return nil
}

// Parts returns the parts the content was made of, the master first. They must not be changed.
func (c *Content) Parts() []placementv1beta1.ResourceSnapshotObject { return c.parts }

// Invalid is an *InvalidError if envelopes cannot be unpacked, else nil.
func (c *Content) Invalid() error {
	if len(c.invalid) == 0 {
		return nil
	}
	return &InvalidError{Envelopes: c.invalid}
}
