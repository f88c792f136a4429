package web

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/status"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	// rowsShown are on a page of a list, clustersShown on one of clusters.
	rowsShown, clustersShown = 50, picture.ClustersShown
	// failedShown are the failing clusters of a run on the page of the fleet.
	failedShown = 5
)

// list is a page of a list, with what it was filtered by.
type list[T any] struct {
	Rows               []T
	Total, Page, Pages int
	Prev, Next         string
	Query, State       string
	States             []string
	// Order is that of the rows, if they can have another.
	Order fleetview.Order
}

// matches reports whether a row is one that the user wants to see.
func (v *visit) matches(state string, texts ...string) bool {
	query := v.URL.Query()
	if wanted := query.Get("state"); wanted != "" && !strings.EqualFold(wanted, state) {
		return false
	}
	text := strings.ToLower(query.Get("q"))
	return text == "" || slices.ContainsFunc(texts, func(one string) bool { return strings.Contains(strings.ToLower(one), text) })
}

// paginate takes the page of rows that a request asks for; beyond the last page it is the last.
func paginate[T any](v *visit, rows []T, size int, states ...updaterun.Phase) list[T] {
	query := v.URL.Query()
	l := list[T]{Total: len(rows), Pages: max(1, (len(rows)+size-1)/size), Query: query.Get("q"), State: query.Get("state"), Order: v.order()}
	l.Page, _ = strconv.Atoi(query.Get("page")) // what is no number is the first
	l.Page = min(max(l.Page, 1), l.Pages)
	l.Rows = rows[(l.Page-1)*size : min(l.Page*size, len(rows))]
	to := func(page int) string {
		query.Set("page", strconv.Itoa(page))
		return "?" + query.Encode()
	}
	query.Del("done")
	if l.Page > 1 {
		l.Prev = to(l.Page - 1)
	}
	if l.Page < l.Pages {
		l.Next = to(l.Page + 1)
	}
	for _, state := range states {
		l.States = append(l.States, strings.ToLower(string(state)))
	}
	return l
}

// order returns how the user wants rows to be sorted.
func (v *visit) order() fleetview.Order { return fleetview.OrderOf(v.URL.Query()) }

// table is rows as pages show them.
type table struct {
	Caption, None string
	Columns       []string
	Cells         [][]fleetview.Cell
	// IDs name the rows, if they come and go alone.
	IDs []string
}

// tableOf writes the cells of rows; none says that there are none.
func tableOf[R any](caption, none string, columns []fleetview.Column[R], rows []R) table {
	headings, cells := fleetview.CellsOf(columns, rows)
	return table{Caption: caption, None: none, Columns: headings, Cells: cells}
}

// Order is none: rows stay as they are.
func (table) Order() fleetview.Order { return fleetview.Order{} }

// sortedTable is a table whose headings sort it.
type sortedTable struct {
	table
	order fleetview.Order
}

// Order is that of the rows.
func (t sortedTable) Order() fleetview.Order { return t.order }

// sortable returns a table whose headings sort it; rows are in the order already.
func sortable[R any](caption, none string, columns []fleetview.Column[R], l list[R]) sortedTable {
	if l.Order.By != "" {
		caption = "Sorted by a column; choose another by its heading"
	}
	return sortedTable{tableOf(caption, none, columns, l.Rows), l.Order}
}

// listPage composes a page of a list that can be filtered; none says what to do where there is nothing in it.
func listPage[R any](title, caption, none string, columns []fleetview.Column[R], l list[R]) (page, error) {
	if l.Query != "" || l.State != "" {
		none = "None."
	}
	section := strings.ToLower(title)
	return compose(title, section, true, piece{section, "list", struct {
		list[R]
		Title string
		Table sortedTable
	}{l, title, sortable(caption, none, columns, l)}})
}

// fleetRow is a placement on the page of the fleet, with the run that rolls it out.
type fleetRow struct {
	feed.Placement
	Run *runRow
}

// runRow is a run in a list.
type runRow struct {
	feed.Run
	Stages []stageRow
}

// stageRow is a stage of a run under way.
type stageRow struct {
	updaterun.Stage
	Broken []string
	More   int
}

func stageRows(run feed.Run) []stageRow {
	var rows []stageRow
	for _, stage := range run.State.Stages {
		row := stageRow{Stage: stage, Broken: stage.ClustersIn(updaterun.PhaseFailed)}
		row.More = max(0, len(row.Broken)-failedShown)
		row.Broken = row.Broken[:len(row.Broken)-row.More]
		rows = append(rows, row)
	}
	return rows
}

func fleetPage(v *visit) (page, error) {
	fleet := v.fleet
	active := map[hub.Ref]*feed.Run{}
	for run := range fleet.Active() {
		if of := run.Run.Placement(); active[of] == nil {
			active[of] = run
		}
	}
	var rows []fleetRow
	for _, p := range fleet.Placements {
		if v.matches(string(p.Row.Phase), p.String(), p.Row.Rollout, p.Object.GetLabels()["team"]) {
			rows = append(rows, fleetRow{Placement: p})
		}
	}
	shown := paginate(v, rows, rowsShown, placementStates...)
	for i := range shown.Rows {
		if run := active[shown.Rows[i].Ref]; run != nil {
			shown.Rows[i].Run = &runRow{*run, stageRows(*run)}
		}
	}
	return compose("Fleet", "fleet", true,
		piece{"banner", "banner", banner{fleet.HoldsInForce(), fleet.Gates.WindowsOfTheDay(), fleet.EngineAway()}},
		piece{"numbers", "numbers", struct {
			feed.Numbers
			Waiting int
		}{fleet.Count(), len(v.waiting())}},
		piece{"fleet", "fleet", shown})
}

var (
	placementStates = []updaterun.Phase{updaterun.PhaseRunning, updaterun.PhaseWaiting, updaterun.PhaseFailed, updaterun.PhaseSucceeded}
	runStates       = []updaterun.Phase{updaterun.PhaseRunning, updaterun.PhaseWaiting, updaterun.PhaseStopped, updaterun.PhaseStuck,
		updaterun.PhaseFailed, updaterun.PhaseSucceeded}
)

// banner is what every reader should know.
type banner struct {
	Holds       []fleetview.Hold
	Windows     []tree.Node
	Unreachable string
}

func waitingPage(v *visit) (page, error) {
	items := v.waiting()
	if v.URL.Query().Get("may") != "" {
		items = slices.DeleteFunc(slices.Clone(items), func(item waitingItem) bool { return v.refusal(item.right) != "" })
	}
	return compose("Waiting for people", "waiting", true, piece{"waiting", "waiting", struct {
		list[waitingItem]
		May bool
	}{paginate(v, items, rowsShown), v.URL.Query().Get("may") != ""}})
}

func placementsPage(v *visit) (page, error) {
	var rows []fleetview.Placement
	for _, p := range v.fleet.Placements {
		if v.matches(string(p.Row.Phase), p.String(), p.Row.Rollout, p.Row.Policy) {
			rows = append(rows, p.Row)
		}
	}
	return listPage("Placements", "Placements of both kinds",
		"None yet. A ClusterResourcePlacement says what goes to which clusters: kubectl apply one.", fleetview.PlacementColumns,
		paginate(v, fleetview.Sort(rows, fleetview.PlacementColumns, v.order()), rowsShown, placementStates...))
}

func runsPage(v *visit) (page, error) {
	var rows []fleetview.Run
	for _, run := range v.fleet.Runs {
		if v.matches(string(run.State.Phase), run.String(), run.Spec.PlacementName, run.Row.WaitingFor) {
			rows = append(rows, run.Row)
		}
	}
	return listPage("Runs", runsCaption,
		"None yet. Roll a placement out from its page, or with kubectl fleet run.", fleetview.RunColumns,
		paginate(v, fleetview.Sort(rows, fleetview.RunColumns, v.order()), rowsShown, runStates...))
}

const runsCaption = "The latest first"

// missingRef is the answer where an object is not there, with the names that are near.
func missingRef[T any](ref hub.Ref, all []T, refOf func(T) hub.Ref) error {
	var near []string
	for _, one := range all {
		other := refOf(one)
		if len(near) < rowsShown/10 && (strings.Contains(other.Name, ref.Name) ||
			strings.HasPrefix(other.Name, ref.Name[:min(len(ref.Name), 3)])) {
			near = append(near, other.Path())
		}
	}
	return &missing{what: ref.String(), near: near}
}

// placement returns the placement that the path names.
func (v *visit) placement() (*feed.Placement, error) {
	ref := refOf(v.Request, hub.KindPlacement)
	if p := v.fleet.Placement(ref); p != nil {
		return p, nil
	}
	return nil, missingRef(ref, v.fleet.Placements, func(p feed.Placement) hub.Ref { return p.Ref })
}

// run returns the run that the path names.
func (v *visit) run() (*feed.Run, error) {
	ref := refOf(v.Request, hub.KindRun)
	if run := v.fleet.Run(ref); run != nil {
		return run, nil
	}
	return nil, missingRef(ref, v.fleet.Runs, func(run feed.Run) hub.Ref { return run.Ref })
}

func placementPage(v *visit) (page, error) {
	p, err := v.placement()
	if err != nil {
		return page{}, err
	}
	facts := v.fleet.FactsOf(p.Ref)
	root := status.Placement(p.Placement, facts, status.Options{All: true})
	var steps, clusters []tree.Node
	for _, node := range root.Children {
		switch node.Kind {
		case status.KindStep, status.KindHold, status.KindWindow, status.KindExemption:
			steps = append(steps, node)
		case status.KindCluster:
			if v.matches(string(node.State), node.Name, node.Detail) {
				clusters = append(clusters, node)
			}
		}
	}
	slices.SortStableFunc(clusters, status.ByUrgency)
	var evictions []*placementv1beta1.ClusterResourcePlacementEviction
	for _, eviction := range v.fleet.Evictions {
		if p.Namespace == "" && eviction.Spec.PlacementName == p.Name && len(evictions) < rowsShown {
			evictions = append(evictions, eviction)
		}
	}
	var runs []fleetview.Run
	for _, run := range v.fleet.RunsOf(p.Ref) {
		runs = append(runs, run.Row)
	}
	root.Children = nil
	entries := status.EntriesOf(p.Placement, facts)
	onClusters := v.fleet.Placed(p.Ref)
	shown := paginate(v, clusters, clustersShown, updaterun.PhaseFailed, updaterun.PhaseRunning, updaterun.PhasePending, updaterun.PhaseSucceeded)
	return compose(p.Name, "placements", true,
		piece{"head", "placement-head", struct {
			*feed.Placement
			Node     tree.Node
			External bool
			Actions  []action
			Links    []fleetview.Link
		}{p, root, p.External(), v.actionsOf(hub.Found{Placement: &p.Placement}), fleetview.LinksOf(p.Object.GetAnnotations())}},
		piece{"steps", "steps", steps},
		piece{"runs", "placement-runs", tableOf(runsCaption, "None.", fleetview.RunColumns, runs[:min(len(runs), rowsShown)])},
		piece{"snapshots", "snapshots", struct {
			picture.Snapshots
			Path string
		}{picture.SnapshotsOf(p.Status.ResourceSnapshots, onClusters, facts.Runs), p.Path()}},
		piece{"clusters", "placement-clusters", struct {
			list[tree.Node]
			Selected  picture.Selected
			Branches  []picture.Branch
			Placement hub.Ref
			LooksOnly bool
		}{shown, picture.SelectedBy(p.Status.SelectedResources, entries), picture.BranchesOf(shown.Rows, entries, onClusters),
			p.Ref, v.person.Writes == nil}},
		piece{"drift", "drift", picture.DriftOf(fleetview.Drift(fleetview.DriftFacts{
			Placement: p.Placement, Bindings: slices.Collect(maps.Values(facts.Bindings))}), p.Ref, onClusters.Unseen)},
		piece{"evictions", "evictions", evictions})
}

func runPage(v *visit) (page, error) {
	run, err := v.run()
	if err != nil {
		return page{}, err
	}
	root := status.Run(run.Run, v.fleet.FactsOf(run.Run.Placement()), status.Options{})
	line := picture.PipelineOf(run.State, root, run.Path(), v.endingOf(run))
	status.StripHints(root.Children)
	var gates, stages []tree.Node
	for _, node := range root.Children {
		if status.IsGate(node) {
			gates = append(gates, node)
		} else {
			stages = append(stages, node)
		}
	}
	root.Children = stages
	return compose(run.Name, "runs", true,
		piece{"head", "run-head", struct {
			*feed.Run
			Sentence string
			Node     tree.Node
			Gates    []tree.Node
			Hash     string
			Temporal string
			Before   string
		}{run, run.Row.Sentence(), root, gates, planHash(run.Run), v.site.temporalLink(run.Ref), fleetview.BeforeItBroke(run.State)}},
		piece{"actions", "actions", v.actionsOf(hub.Found{Run: &run.Run})},
		piece{"pipeline", "pipeline", line},
		piece{"timeline", "timeline", picture.TimelineOf(run.State, root.Start, root.End, v.fleet.Ahead(run), picture.HeldBy(run.Condition(fleetflowv1alpha1.ConditionTypeHeld)), v.fleet.At)},
		piece{"stages", "stages", struct {
			Run  hub.Ref
			Node tree.Node
		}{run.Ref, root}})
}

// endingOf returns how the user ends the waits of a run for approvals.
func (v *visit) endingOf(run *feed.Run) picture.Ending {
	return func(stage string) (path, refusal string) {
		if v.person.Writes == nil {
			return "", ""
		}
		return approvePath(run.Ref, stage), v.refusal(v.rightOf(steer.Approve().Form.Rights(hub.Found{Run: &run.Run})[0]))
	}
}

func analysesPage(v *visit) (page, error) {
	run, err := v.run()
	if err != nil {
		return page{}, err
	}
	found, err := v.person.Reading.Analyses(v.Context(), run.Run)
	if err != nil {
		return page{}, err
	}
	var drawn []picture.Analysis
	for _, one := range found {
		drawn = append(drawn, picture.AnalysisOf(one))
	}
	return compose("Analyses of "+run.Name, "runs", false, piece{"analyses", "analyses", struct {
		Run      hub.Ref
		Analyses []picture.Analysis
	}{run.Ref, drawn}})
}

// runCluster is a cluster of a run in a list.
type runCluster struct {
	Stage string
	updaterun.Cluster
}

// runClusterColumns are what clusters of a run can be sorted by.
var runClusterColumns = []fleetview.Column[runCluster]{
	{Page: "Cluster", Text: func(c runCluster) string { return c.Name }}, {Page: "Stage", Text: func(c runCluster) string { return c.Stage }},
	{Page: "State", Cell: func(c runCluster) fleetview.Cell { return fleetview.Cell{State: c.Phase} }},
	{Page: "Began", Cell: func(c runCluster) fleetview.Cell { return fleetview.Cell{At: &c.Started} }},
	{Page: "Ended", Cell: func(c runCluster) fleetview.Cell { return fleetview.Cell{At: &c.Ended} }},
	{Page: "Why", Text: func(c runCluster) string { return c.Why }},
}

func runClustersPage(v *visit) (page, error) {
	run, err := v.run()
	if err != nil {
		return page{}, err
	}
	var rows []runCluster
	for _, stage := range run.State.Stages {
		if wanted := v.URL.Query().Get("stage"); wanted != "" && wanted != stage.Title() {
			continue
		}
		for _, cluster := range stage.Clusters {
			if v.matches(string(cluster.Phase), cluster.Name, cluster.Why) {
				rows = append(rows, runCluster{stage.Title(), cluster})
			}
		}
	}
	return compose("Clusters of "+run.Name, "runs", true, piece{"clusters", "run-clusters", struct {
		list[runCluster]
		Run     hub.Ref
		Stage   string
		Columns []string
	}{paginate(v, fleetview.Sort(rows, runClusterColumns, v.order()), clustersShown, updaterun.PhasePending, updaterun.PhaseRunning, updaterun.PhaseFailed,
		updaterun.PhaseSkipped, updaterun.PhaseSucceeded), run.Ref, v.URL.Query().Get("stage"), tableOf("", "", runClusterColumns, nil).Columns}})
}

func clustersPage(v *visit) (page, error) {
	var rows []fleetview.Member
	for _, row := range v.fleet.Clusters {
		if v.matches(row.Health(), row.Name, row.Version, strings.Join(row.Taints, " ")) {
			rows = append(rows, row)
		}
	}
	l := paginate(v, fleetview.Sort(rows, fleetview.MemberColumns, v.order()), clustersShown)
	l.States = memberStates
	return listPage("Clusters", "Members of the fleet",
		"None yet. kubectl fleet join takes a cluster in.", fleetview.MemberColumns, l)
}

// versionsShown is how many placements a matrix shows at a time.
const versionsShown = 25

// mapPath is the path of the map of the fleet.
const mapPath = "/map"

// mapQuery is what a map depends on, beside the fleet: who asks for the same is shown the same.
type mapQuery struct {
	by, value   string
	one         bool
	text, state string
	// page is that of the placements.
	page int
}

// drawnMap is what is drawn for a query.
type drawnMap struct {
	picture.Map
	picture.Versions
}

func mapPage(v *visit) (page, error) {
	query := v.URL.Query()
	shown := paginate(v, v.fleet.Map().Placed, versionsShown)
	shown.States = memberStates
	asked := mapQuery{query.Get("by"), query.Get("is"), query.Has("is"), shown.Query, shown.State, shown.Page}
	drawn := v.fleet.Drawn(asked, func() any { return v.drawMap(asked, shown.Rows) }).(drawnMap) //nolint:forcetypeassert // what such a query has is that
	return compose("Map", "map", true, piece{"map", "map", struct {
		picture.Map
		Query, State, Is string
		One, Unseen      bool
		States           []string
	}{drawn.Map, shown.Query, shown.State, asked.value, asked.one, !v.fleet.Sees("member clusters"), memberStates}},
		piece{"versions", "versions", struct {
			list[picture.Placed]
			picture.Versions
			By string
		}{shown, drawn.Versions, drawn.By}})
}

// drawMap draws the map of the fleet and which of its clusters have which snapshots of some placements.
func (v *visit) drawMap(asked mapQuery, placed []picture.Placed) drawnMap {
	members := slices.DeleteFunc(slices.Clone(v.fleet.Map().Members), func(m picture.Member) bool {
		return !v.matches(m.Health(), m.Name, strings.Join(m.Changing, " "))
	})
	var only *string
	if asked.one {
		only = &asked.value
	}
	drawn := picture.MapOf(members, asked.by, only)
	if asked.one {
		members = slices.DeleteFunc(members, func(m picture.Member) bool { return m.Labels[drawn.By] != asked.value })
	}
	return drawnMap{drawn, picture.VersionsOf(placed, members, drawn.By)}
}

// memberStates are what members are told apart by.
var memberStates = []string{"healthy", "unhealthy", "late", "leaving"}

// placed is a placement on a cluster.
type placed struct {
	Placement hub.Ref
	Node      tree.Node
	Snapshot  string
}

func clusterPage(v *visit) (page, error) {
	fleet := v.fleet
	ref := refOf(v.Request, hub.KindMember)
	at := slices.IndexFunc(fleet.Clusters, func(row fleetview.Member) bool { return row.Name == ref.Name })
	if at < 0 {
		return page{}, missingRef(ref, fleet.Clusters, func(row fleetview.Member) hub.Ref {
			return hub.Ref{Kind: hub.KindMember,
				Name: row.Name}
		})
	}
	on := fleet.On(ref.Name)
	var rows []placed
	for _, placement := range slices.SortedFunc(maps.Keys(on), func(a, b hub.Ref) int { return cmp.Compare(a.String(), b.String()) }) {
		rows = append(rows, placed{placement, status.OnCluster(on[placement]), on[placement].Spec.ResourceSnapshotName})
	}
	return compose(ref.Name, "clusters", true,
		piece{"head", "cluster-head", struct {
			Row        fleetview.Member
			Labels     map[string]string
			Properties map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue
			Conditions []metav1.Condition
		}{fleet.Clusters[at], fleet.Members[at].Labels, fleet.Members[at].Status.Properties, fleet.Members[at].Status.Conditions}},
		piece{"changing", "changing", fleet.Changing(ref.Name)},
		piece{"placed", "placed", paginate(v, rows, clustersShown)})
}

func holdsPage(v *visit) (page, error) {
	columns := append(slices.Clone(fleetview.HoldColumns), fleetview.Column[fleetview.Hold]{Page: "Action",
		Cell: func(h fleetview.Hold) fleetview.Cell {
			if v.person.Writes == nil {
				return fleetview.Cell{}
			}
			return fleetview.Cell{Text: "Release", Path: "/holds/" + h.Name + "/release", Button: true}
		}})
	l := paginate(v, fleetview.Sort(v.fleet.HoldRows(), columns, v.order()), rowsShown)
	return compose("Holds", "holds", true,
		piece{"actions", "actions", v.actionsOf(hub.Found{})},
		piece{"holds", "holds", struct {
			list[fleetview.Hold]
			Table sortedTable
		}{l, sortable("What stops the line", "Nothing is held.", columns, l)}})
}

func channelsPage(v *visit) (page, error) {
	rows, err := v.person.Reading.Told(v.Context())
	if err != nil {
		return page{}, err
	}
	l := paginate(v, fleetview.Sort(rows, fleetview.ToldColumns, v.order()), rowsShown)
	return compose("Channels", "", false, piece{"channels", "channels", struct {
		list[fleetview.Told]
		Table sortedTable
	}{l, sortable("Where messages and records go", "There are no channels, rules and sinks: no message is sent.", fleetview.ToldColumns, l)}})
}

// historyRows are how many entries of a history are on a page.
const historyRows = 100

func historyPage(v *visit) (page, error) {
	p, entries, err := v.history()
	if err != nil {
		return page{}, err
	}
	query := v.URL.Query()
	file := func(format string) string {
		query.Set("format", format)
		return "?" + query.Encode()
	}
	columns := fleetview.HistoryColumns(v.site.Clock.Now())
	l := paginate(v, fleetview.Sort(entries, columns, v.order()), historyRows)
	return compose("History of "+p.Name, "placements", false, piece{"history", "history", struct {
		list[fleetview.Entry]
		Table         sortedTable
		Placement     hub.Ref
		Type, By, Run string
		From          string
		Types         []string
		CSV, Lines    string
	}{
		l, sortable("The latest first, from what is on the hub", "Nothing.", columns, l), p.Ref,
		query.Get("type"), query.Get("by"), query.Get("run"), query.Get("from"),
		[]string{"placement", "policy", "snapshot", "run", "approval", "eviction"}, file("csv"), file("jsonl"),
	}})
}

// history returns what of the history of a placement the user wants to see, the latest first.
func (v *visit) history() (*feed.Placement, []fleetview.Entry, error) {
	p, err := v.placement()
	if err != nil {
		return nil, nil, err
	}
	entries, err := v.person.Reading.History(v.Context(), p.Placement)
	if err != nil {
		return nil, nil, err
	}
	slices.Reverse(entries)
	return p, v.filterHistory(entries), nil
}

func searchPage(v *visit) (page, error) {
	return compose("Search", "", false, piece{"hits", "hits", paginate(v, v.fleet.Search(v.URL.Query().Get("q")), rowsShown)})
}

// temporalLink leads to the workflow of a run in Temporal's own pages.
func (s *Server) temporalLink(run hub.Ref) string {
	if s.Temporal == "" {
		return ""
	}
	return strings.TrimSuffix(s.Temporal, "/") + "/workflows/" + url.PathEscape(wf.UpdateRunID(run.Namespace, run.Name))
}
