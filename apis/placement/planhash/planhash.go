package planhash

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// version is part of every hash. It goes up when what is hashed changes: plans that were reviewed before do not match any more then,
// and runs keep the hash that they have.
const version = 1

// Prefix begins every hash.
const Prefix = "sha256:"

// None is what a cluster has that nothing was placed on.
const None = "none"

// Facts are what a plan is made from in addition to what a run freezes in its status.
type Facts struct {
	Placement  placementv1beta1.PlacementObject
	RollbackOf string
	// Bases are what clusters have when the plan is made, by their names; one that is missing has nothing.
	Bases map[string]string
	// Resources are the hashes of what is in resource snapshots, by index.
	Resources map[string]string
}

// Plan is what goes into a hash. Stages, and the clusters of a stage, are in the order in which they are updated; all other lists are
// sorted.
type Plan struct {
	Version       int             `json:"v"`
	Placement     subject         `json:"placement"`
	RollbackOf    string          `json:"rollbackOf"`
	PolicyIndex   string          `json:"policyIndex"`
	ApplyStrategy json.RawMessage `json:"applyStrategy"`
	Strategy      json.RawMessage `json:"strategy"`
	Snapshot      snapshot        `json:"snapshot"`
	Stages        []stage         `json:"stages"`
	Deletion      []removal       `json:"deletion"`
}

type subject struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

type snapshot struct {
	Index        string `json:"index"`
	ResourceHash string `json:"resourceHash"`
}

type stage struct {
	Name     string    `json:"name"`
	Clusters []cluster `json:"clusters"`
}

type cluster struct {
	Name      string   `json:"name"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	ToHash    string   `json:"toHash"`
	Overrides []string `json:"overrides"`
}

type removal struct {
	Name string `json:"name"`
	From string `json:"from"`
}

// Make returns the plan that is frozen in the status of a run.
func Make(status *placementv1beta1.UpdateRunStatus, facts Facts) Plan {
	p := Plan{
		Version:       version,
		Placement:     subject{facts.Placement.GetNamespace(), facts.Placement.GetName(), string(facts.Placement.GetUID())},
		RollbackOf:    facts.RollbackOf,
		PolicyIndex:   status.PolicySnapshotIndexUsed,
		ApplyStrategy: canonical(status.ApplyStrategy),
		Strategy:      canonicalStrategy(status.UpdateStrategySnapshot),
		Snapshot:      snapshot{status.ResourceSnapshotIndexUsed, facts.Resources[status.ResourceSnapshotIndexUsed]},
		Stages:        make([]stage, len(status.StagesStatus)),
		Deletion:      []removal{},
	}
	for i := range status.StagesStatus {
		planned := &status.StagesStatus[i]
		p.Stages[i] = stage{planned.StageName, make([]cluster, len(planned.Clusters))}
		for j := range planned.Clusters {
			p.Stages[i].Clusters[j] = clusterOf(&planned.Clusters[j], status, facts)
		}
	}
	if status.DeletionStageStatus != nil {
		for i := range status.DeletionStageStatus.Clusters {
			name := status.DeletionStageStatus.Clusters[i].ClusterName
			p.Deletion = append(p.Deletion, removal{name, facts.base(name)})
		}
	}
	slices.SortFunc(p.Deletion, func(a, b removal) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

func clusterOf(planned *placementv1beta1.ClusterUpdatingStatus, status *placementv1beta1.UpdateRunStatus, facts Facts) cluster {
	to := planned.ResourceSnapshotIndex
	if to == "" && facts.RollbackOf == "" { // in a rollback, it is a cluster that stays as it is
		to = status.ResourceSnapshotIndexUsed
	}
	// None is an empty list, be it nil in the status or not.
	overrides := make([]string, 0, len(planned.ClusterResourceOverrideSnapshots)+len(planned.ResourceOverrideSnapshots))
	overrides = append(overrides, planned.ClusterResourceOverrideSnapshots...)
	for _, o := range planned.ResourceOverrideSnapshots {
		overrides = append(overrides, o.Namespace+"/"+o.Name)
	}
	slices.Sort(overrides)
	return cluster{planned.ClusterName, facts.base(planned.ClusterName), to, facts.Resources[to], overrides}
}

func (f Facts) base(cluster string) string { return cmp.Or(f.Bases[cluster], None) }

// Hash returns the hash of a plan.
func (p Plan) Hash() string { return Prefix + digest(p) }

// digest returns the hash of what is written as JSON.
func digest(of any) string {
	sum := sha256.Sum256(marshal(of))
	return hex.EncodeToString(sum[:])
}

func marshal(of any) []byte {
	raw, err := json.Marshal(of)
	if err != nil {
		panic(err) // the types of the API always marshal
	}
	return raw
}

// notPlanned are the fields of a stage that are no part of a plan: those that say which clusters it has, which a plan has by name and
// in their order, and the windows in which they start.
var notPlanned = []string{"labelSelector", "sample", "sortingLabelKey", "order", "windows"}

// canonicalStrategy returns what a strategy says beside which clusters are in which stage.
func canonicalStrategy(strategy *placementv1beta1.UpdateStrategySpec) json.RawMessage {
	if strategy == nil {
		return json.RawMessage("null")
	}
	content := fieldsOf(strategy)
	stages, _ := content["stages"].([]any)
	for i := range stages {
		config, _ := stages[i].(map[string]any)
		for _, field := range notPlanned {
			delete(config, field)
		}
		sortLists(config)
	}
	return marshal(content)
}

// canonical returns what the order of fields in a type of the API does not change.
func canonical(of any) json.RawMessage { return marshal(fieldsOf(of)) }

func fieldsOf(of any) map[string]any {
	var content map[string]any
	decoder := json.NewDecoder(bytes.NewReader(marshal(of)))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		panic(err) // it was written just now
	}
	return content
}

// sortLists sorts all lists below a stage, which are sets.
func sortLists(of any) {
	switch value := of.(type) {
	case map[string]any:
		for _, field := range value {
			sortLists(field)
		}
	case []any:
		for _, item := range value {
			sortLists(item)
		}
		slices.SortFunc(value, func(a, b any) int { return bytes.Compare(marshal(a), marshal(b)) })
	}
}

// pattern is that of a hash, or of as much of its beginning as an approval may name.
var pattern = regexp.MustCompile(`^sha256:[0-9a-f]{12,64}$`)

// IsHash reports whether a text is a hash, or its beginning with 12 digits or more.
func IsHash(text string) bool { return pattern.MatchString(text) }

// Matches reports whether what an approval names is a hash, or its beginning with 12 digits or more.
func Matches(named, hash string) bool { return IsHash(named) && strings.HasPrefix(hash, named) }

// Short returns as much of a hash as tells plans apart for people.
func Short(hash string) string {
	digits := strings.TrimPrefix(hash, Prefix)
	return digits[:min(len(digits), 12)]
}
