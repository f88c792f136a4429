package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/outbound"
	"github.com/fleetflow/fleetflow/activities/selection"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/stagedupdate"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/agent"
	"github.com/fleetflow/fleetflow/controllers/hub/records"
)

// Roles of a process: controllers elect a leader, workers all work.
const (
	roleAll         = "all"
	roleControllers = "controllers"
	roleWorker      = "worker"
)

// What ConfigMaps that are envelopes may hold.
const (
	configMapsHoldNamespaced = "namespaced"
	configMapsHoldAny        = "any"
)

type options struct {
	agent.Process
	kubeconfig string
	role       string
	temporal   temporalOptions

	qps   float64
	burst int

	// filter is read from the flags that keep something from being placed.
	filterFlags snapshot.FilterOptions
	filter      snapshot.Filter
	// configMapEnvelopes is what ConfigMaps may hold for members.
	configMapEnvelopes string
	pace               selection.Pace
	ceiling            selection.Ceiling
	// bytesPerSecond and maxBytes are read into the pace and the ceiling.
	bytesPerSecond, maxBytes resource.QuantityValue

	inventory        bool
	decisions        bool
	locationLabels   bool
	profileNamespace string
	forceDeleteWait  time.Duration
	evictionTTL      time.Duration
	// holdRemovals keeps bindings that would go unexplained.
	holdRemovals       bool
	unhealthyThreshold time.Duration
	// words names the vocabulary in which statuses are written.
	words      string
	vocabulary placementv1beta1.Vocabulary

	// sourceNamespace has the Secrets of metric sources.
	sourceNamespace string
	// reach is what metrics may reach on the hub, guard which addresses sources may not have, as the flags after them have it.
	reach                       analysis.Reach
	hubKinds, jobNamespaces     string
	guard                       outbound.Guard
	allowedRanges, deniedRanges string

	// verifiedExemptions has exemptions count only if the hub's API server says who has made them.
	verifiedExemptions bool

	// records has AuditRecords written, keptRecords says how many are kept, and for how long.
	records     bool
	keptRecords records.Bounds
	// recordFiles is the folder of the files that records are delivered to.
	recordFiles string

	// outages knows when the hub's API server could not be reached.
	outages *stagedupdate.APIServerOutages
	// clock is that of the hub's API server.
	clock *agent.APIClock
}

// parseOptions reads the flags; the error names what is wrong and what is allowed.
func parseOptions(args []string, out io.Writer, lookup func(string) (string, bool)) (*options, error) {
	clk := agent.NewAPIClock(clock.RealClock{})
	o := &options{outages: &stagedupdate.APIServerOutages{Clock: clk}, clock: clk}
	f := flag.NewFlagSet("hub-agent", flag.ContinueOnError)
	f.SetOutput(out)
	o.Add(f, agent.Defaults{
		LeaderElect: "let one of several hub agents run the controllers", LeaseNamespace: "fleet-system",
		LeaseNamespaceUsage: "namespace of the lease",
		ProfilesPort:        6065,
	})
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the hub; the Pod's service account is used if empty")
	f.StringVar(&o.role, "role", roleAll, "what this process runs: controllers (one replica leads), worker (every replica works), or all")
	o.temporal.addFlags(f)
	f.Float64Var(&o.qps, "hub-api-qps", 250, "requests a second to the hub's API server")
	f.IntVar(&o.burst, "hub-api-burst", 1000, "requests to the hub's API server that may come at once")
	f.BoolVar(&o.inventory, "enable-cluster-inventory-apis", false,
		"keep a ClusterProfile, the inventory object of SIG Multicluster, for every cluster that has joined; the hub needs the kind's CRD")
	f.StringVar(&o.profileNamespace, "cluster-profile-namespace", clusterv1beta1.SystemNamespace,
		"namespace of the ClusterProfiles; it must exist")
	f.BoolVar(&o.decisions, "enable-placement-decisions", false,
		"keep PlacementDecisions of SIG Multicluster in the namespace of the ClusterProfiles, which name the clusters of each placement; the hub needs the kind's CRD")
	f.BoolVar(&o.locationLabels, "label-member-locations", false,
		"label MemberClusters with the provider, region and zones that their agents report, unless these labels are set by hand; placements pick clusters by them, so turn it on only if you trust what members say of themselves")
	f.DurationVar(&o.forceDeleteWait, "force-delete-wait-time", 15*time.Minute,
		"how long to wait for the agent of a leaving cluster before the cluster is removed without it")
	f.DurationVar(&o.evictionTTL, "executed-eviction-ttl", 0, "after how long an eviction that was executed is deleted; 0 keeps it until a user deletes it")
	f.BoolVar(&o.holdRemovals, "hold-unexplained-removals", true,
		"hold removals of bindings that neither a change of a placement nor a deletion explains, if there are more than a handful after a start, until kubectl fleet migrate accept; false lets them go")
	f.StringVar(&o.words, "vocabulary", wordsOfDocumentation, "in which of KubeFleet's words statuses and approval requests are written: documentation (those of its documentation) or kubefleet (those of its releases of 2026); a run keeps the words that it began with")
	f.DurationVar(&o.unhealthyThreshold, "cluster-unhealthy-threshold", time.Minute,
		"how long a cluster may be silent before it counts as unhealthy; at least three heartbeats are waited for")
	f.StringVar(&o.filterFlags.SkippedAPIs, snapshot.SkippedAPIsFlag, "",
		"APIs that are not placed, separated by semicolons, as <group>, <group>/<version> or <group>/<version>/<kind>,<kind>; the core group has no name, as in v1/Secret")
	f.StringVar(&o.filterFlags.AllowedAPIs, snapshot.AllowedAPIsFlag, "",
		"the only APIs that are placed, in the same form; not together with --"+snapshot.SkippedAPIsFlag)
	f.StringVar(&o.filterFlags.PlaceableNamespaces, snapshot.PlaceableFlag, "",
		"the only namespaces of which something is placed, separated by commas, by ResourcePlacements; of what is cluster-scoped only these Namespaces themselves, with selectionScope NamespaceOnly. Empty for all")
	f.StringVar(&o.filterFlags.SkippedNamespaces, snapshot.SkippedNamespacesFlag, "",
		"namespaces that are not placed, separated by commas or semicolons, beside default, fleet-* and kube-*")
	f.BoolVar(&o.filterFlags.Workload, snapshot.EnableWorkloadFlag, false,
		"the hub runs workloads of its own: PersistentVolumeClaims, which those make, are not placed")
	f.StringVar(&o.configMapEnvelopes, "configmap-envelopes", configMapsHoldNamespaced,
		"what ConfigMaps that are envelopes may hold: namespaced (objects of their own namespace) or any (cluster-scoped objects too; only with an admission policy that keeps them to those who may create ClusterResourceEnvelopes, as the chart's guard rails have it)")
	f.DurationVar(&o.pace.MinimumInterval, "resource-snapshot-creation-minimum-interval", 0,
		"the least time between two snapshots of what a placement selects; an update run takes the latest content despite it")
	f.DurationVar(&o.pace.Collection, "resource-changes-collection-duration", 0,
		"how long changes of what a placement selects are collected before a snapshot is made of them; an update run takes the latest content despite it")
	f.Var(&o.bytesPerSecond, selection.BytesPerSecondFlag, "how many bytes a second the agent writes at most for one placement, its snapshots and their Works together, such as 2Mi: after changes that take longer to write, the next ones wait; 0 is no bound; an update run takes the latest content despite it")
	f.Int64Var(&o.ceiling.Objects, selection.MaxObjectsFlag, 20_000,
		"how many objects one placement may select; one that selects more stays as it is; 0 is no bound")
	o.maxBytes.Quantity = *resource.NewQuantity(64<<20, resource.BinarySI)
	f.Var(&o.maxBytes, selection.MaxBytesFlag, "how many bytes of JSON one placement may select; one that selects more stays as it is; 0 is no bound")
	f.StringVar(&o.sourceNamespace, "metric-source-namespace", "fleet-system",
		"namespace of the Secrets of MetricSources: that of the hub agent")
	f.BoolVar(&o.reach.Works, "analysis-works", false, "let metrics of StageAnalyses look at objects that placements have put on clusters, Secrets excepted: users who may write StageAnalyses can find out what is in them, so a guard rail has to say who writes such metrics")
	f.StringVar(&o.hubKinds, "analysis-hub-kinds", "", "the kinds of which metrics of StageAnalyses may read objects of the hub, separated by commas, as in Deployment.apps or, for one namespace, web/ConfigMap: users who may write StageAnalyses can find out what is in them. Secrets, and what holds copies of them, are refused")
	f.StringVar(&o.jobNamespaces, "analysis-job-namespaces", "",
		"namespaces of the hub in which metrics of StageAnalyses may run Jobs, made of suspended CronJobs, separated by commas")
	f.StringVar(&o.allowedRanges, "metric-source-allowed-cidrs", "",
		"the only ranges of addresses in which MetricSources may be, separated by commas, as in 10.0.0.0/8; empty for all that are not refused anyhow")
	f.StringVar(&o.deniedRanges, "metric-source-denied-cidrs", "",
		"further ranges of addresses in which no MetricSource may be, separated by commas")
	f.BoolVar(&o.guard.AllowLoopback, "metric-sources-on-loopback", false,
		"let MetricSources have addresses of the hub agent's own machine; for fleets for development only")
	f.BoolVar(&o.verifiedExemptions, "require-verified-exemptions", true,
		"let RolloutExemptions count only if the hub's API server says who has made them")
	f.BoolVar(&o.records, recordsFlag, false,
		"keep AuditRecords of update runs, placements, members, holds, evictions and overrides: who did what, and what became of it. They stay when the objects and Temporal's histories are gone")
	f.DurationVar(&o.keptRecords.Age, recordsKeepFlag, 30*24*time.Hour, "for how long an AuditRecord is kept")
	f.IntVar(&o.keptRecords.Total, recordsMaxFlag, 20_000, "how many AuditRecords there are at most: of more, the oldest are deleted before their time, with a warning; each takes about 2 KB in etcd")
	f.StringVar(&o.recordFiles, "records-files", "", "folder of the files that AuditSinks of type File have AuditRecords written to; empty if there are none")
	if err := f.Parse(args); err != nil || o.Version {
		return o, err
	}
	o.vocabulary = vocabularies[o.words]
	o.pace.BytesPerSecond, o.ceiling.Bytes = o.bytesPerSecond.Value(), o.maxBytes.Value()
	return o, errors.Join(o.checkFlags(), o.checkRecordFlags(), o.temporal.checkFlags(lookup), o.Check())
}

// Flags about AuditRecords, and how many of one object are kept: a run that stops and goes on all the time does not crowd out others.
const (
	recordsFlag     = "records"
	recordsKeepFlag = "records-keep"
	recordsMaxFlag  = "records-max"

	recordsOfRun = 1000
)

// checkRecordFlags checks how many AuditRecords are kept, and for how long.
func (o *options) checkRecordFlags() error {
	if o.keptRecords.Age < time.Hour || o.keptRecords.Total < 1 {
		return fmt.Errorf("--%s must be an hour or more, and --%s 1 or more: leave --%s off to keep none", recordsKeepFlag, recordsMaxFlag, recordsFlag)
	}
	return nil
}

// bounds returns how many AuditRecords are kept; nil if none are written.
func (o *options) bounds() *records.Bounds {
	if !o.records {
		return nil
	}
	bounds := o.keptRecords
	bounds.OfSubject = recordsOfRun
	return &bounds
}

// Values of --vocabulary.
const (
	wordsOfDocumentation = "documentation"
	wordsOfKubeFleet     = "kubefleet"
)

var vocabularies = map[string]placementv1beta1.Vocabulary{
	wordsOfDocumentation: placementv1beta1.VocabularyDocumentation, wordsOfKubeFleet: placementv1beta1.VocabularyKubeFleet,
}

// checkLeader refuses what only an agent can do that leads and runs everything, or all agents of a Temporal that they share.
func (o *options) checkLeader() error {
	leads := o.role == roleAll && o.LeaderElect
	switch {
	case o.temporal.versioned && (!leads || o.temporal.bundled()):
		return fmt.Errorf("--%s has the agent that leads name the build whose workers get tasks, which are its own: leave --role as it is, set --leader-elect, and use it with --%s=External",
			temporalVersionsFlag, temporalModeFlag)
	case o.temporal.bundled() && !leads:
		return fmt.Errorf("--%s=%s has the agent that leads run controllers and workers, and no other: leave --role as it is, and set --leader-elect",
			temporalModeFlag, o.temporal.mode)
	}
	return nil
}

func (o *options) checkFlags() error {
	switch o.role {
	case roleAll, roleControllers, roleWorker:
	default:
		return fmt.Errorf("--role is %q; it must be %s, %s or %s", o.role, roleAll, roleControllers, roleWorker)
	}
	if err := o.checkLeader(); err != nil {
		return err
	}
	if err := o.checkSelectionFlags(); err != nil {
		return err
	}
	if o.configMapEnvelopes != configMapsHoldNamespaced && o.configMapEnvelopes != configMapsHoldAny {
		return fmt.Errorf("--configmap-envelopes is %q; it must be %s or %s", o.configMapEnvelopes, configMapsHoldNamespaced, configMapsHoldAny)
	}
	if o.vocabulary == "" {
		return fmt.Errorf("--vocabulary is %q; it must be %s or %s", o.words, wordsOfDocumentation, wordsOfKubeFleet)
	}
	if o.evictionTTL < 0 {
		return errors.New("--executed-eviction-ttl must not be negative; 0 keeps executed evictions")
	}
	if o.forceDeleteWait < 0 || o.unhealthyThreshold < 0 {
		return errors.New("--force-delete-wait-time and --cluster-unhealthy-threshold must not be negative")
	}
	if (o.inventory || o.decisions) && o.profileNamespace == "" {
		return errors.New("--cluster-profile-namespace is empty; name the namespace of the ClusterProfiles, or leave --enable-cluster-inventory-apis and --enable-placement-decisions off")
	}
	if err := o.readAnalysisFlags(); err != nil {
		return err
	}
	filter, err := snapshot.NewFilter(o.filterFlags)
	o.filter = filter
	return err
}

// checkSelectionFlags checks how fast and how much is selected.
func (o *options) checkSelectionFlags() error {
	if o.pace.MinimumInterval < 0 || o.pace.Collection < 0 {
		return errors.New("--resource-snapshot-creation-minimum-interval and --resource-changes-collection-duration must not be negative; 0 takes up every change at once")
	}
	if o.pace.BytesPerSecond < 0 {
		return fmt.Errorf("--%s must not be negative; 0 is no bound", selection.BytesPerSecondFlag)
	}
	if o.ceiling.Objects < 0 || o.ceiling.Bytes < 0 {
		return fmt.Errorf("--%s and --%s must not be negative; 0 is no bound", selection.MaxObjectsFlag, selection.MaxBytesFlag)
	}
	return nil
}

// readAnalysisFlags reads what analyses may reach.
func (o *options) readAnalysisFlags() (err error) {
	o.reach.JobNamespaces = splitList(o.jobNamespaces)
	if o.reach.HubKinds, err = analysis.ParseHubKinds(splitList(o.hubKinds)); err != nil {
		return fmt.Errorf("--analysis-hub-kinds: %w", err)
	}
	if o.guard.Allowed, err = outbound.ParseRanges(splitList(o.allowedRanges)); err != nil {
		return fmt.Errorf("--metric-source-allowed-cidrs: %w", err)
	}
	if o.guard.Denied, err = outbound.ParseRanges(splitList(o.deniedRanges)); err != nil {
		return fmt.Errorf("--metric-source-denied-cidrs: %w", err)
	}
	return nil
}

// splitList returns the entries of a list that commas separate.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// exemptions returns which RolloutExemptions count.
func (o *options) exemptions() hubread.ExemptionRule {
	return hubread.ExemptionRule{Unverified: !o.verifiedExemptions}
}

// namespaceOfDecisions returns where placements have PlacementDecisions; empty if they have none.
func (o *options) namespaceOfDecisions() string {
	if !o.decisions {
		return ""
	}
	return o.profileNamespace
}

// namespaceOfProfiles returns where members have ClusterProfiles; empty if they have none.
func (o *options) namespaceOfProfiles() string {
	if !o.inventory {
		return ""
	}
	return o.profileNamespace
}

// hubConfig returns the connection to the hub.
func (o *options) hubConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("loading the kubeconfig of the hub: %w", err)
	}
	config.QPS = float32(o.qps)
	config.Burst = o.burst
	config.UserAgent = "fleetflow-hub-agent"
	config.Wrap(o.outages.Wrap)
	config.Wrap(o.clock.Wrap)
	return config, nil
}
