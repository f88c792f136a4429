package boundaries

// A rule keeps some packages from some imports, however far down the chain of imports they are.
type rule struct {
	// of are the packages the rule is about, as prefixes below the module's path; a trailing /... takes in what is below.
	of []string
	// except are packages that of takes in and the rule is not about, as of has them.
	except []string
	// never are import paths, or prefixes of import paths, that none of them may reach.
	never []string
	// but are exceptions from never.
	but []string
}

const (
	module   = "github.com/fleetflow/fleetflow"
	temporal = "go.temporal.io"
)

// clients are the modules that talk to a Kubernetes API server.
var clients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}

// applyConfigurations are the folders that `make generate` writes beside the types, whose programs do not get them.
var applyConfigurations = []string{"apis/cluster/applyconfiguration/...", "apis/fleetflow/applyconfiguration/...", "apis/placement/applyconfiguration/..."}

// rules returns the borders of the module by the sentence that each of them is.
func rules() map[string]rule {
	return map[string]rule{
		"API types import apimachinery and each other": {
			of:     []string{"apis/..."},
			except: applyConfigurations,
			never:  append([]string{temporal, module}, clients...),
			but:    []string{module + "/apis"},
		},
		// Those of Kubernetes' own metadata bring client-go's discovery along.
		"apply configurations bring client-go along, and no kinds or controllers": {
			of:    applyConfigurations,
			never: []string{temporal, module, "sigs.k8s.io/controller-runtime", "k8s.io/client-go/kubernetes/typed", "k8s.io/client-go/informers"},
			but:   []string{module + "/apis"},
		},
		"pure packages know no client and no Temporal": {
			of: []string{
				"workflows/rollout", "workflows/contract", "activities/envelope", "activities/scheduler/...",
				"activities/analysis", "activities/brake", "activities/override", "activities/snapshot", "activities/planning", "activities/workmodel", "controllers/member/availability",
			},
			never: append([]string{temporal}, clients...),
		},
		"the contract needs the standard library": {
			of:    []string{"workflows/contract"},
			never: []string{"k8s.io", "sigs.k8s.io", "github.com", "golang.org", "google.golang.org", "gopkg.in", "go.yaml.in", temporal},
		},
		"workflows know nothing of Kubernetes": {
			of:    []string{"workflows/..."},
			never: []string{"k8s.io", "sigs.k8s.io", module + "/apis", module + "/controllers", module + "/activities"},
		},
		"activities do not reach back into workflows and controllers": {
			of:    []string{"activities/..."},
			never: []string{module + "/controllers", module + "/worker", module + "/workflows"},
			// The window of a rollout is decided in workflows and proposed by activities; the table of timeouts is shared.
			but: []string{module + "/workflows/contract", module + "/workflows/rollout", module + "/workflows/call"},
		},
		"the hub's controllers start workflows without knowing them": {
			of:    []string{"controllers/hub/..."},
			never: []string{module + "/worker", module + "/workflows/placement", module + "/workflows/stagedupdate", module + "/controllers/member"},
		},
		"the member agent needs no Temporal and nothing of the hub": {
			of:    []string{"controllers/member/...", "cmd/member-agent"},
			never: []string{temporal, module + "/workflows", module + "/activities", module + "/worker", module + "/controllers/hub"},
		},
		"the command line needs the hub's API alone": {
			of:    []string{"cmd/internal/...", "cmd/kubectl-fleet/...", "cmd/fleet-dashboard/..."},
			never: []string{temporal, module + "/controllers", module + "/worker", module + "/workflows/placement", module + "/workflows/stagedupdate"},
		},
		"the plugin, which people download, brings nothing along that runs controllers": {
			of:    []string{"cmd/internal/...", "cmd/kubectl-fleet/..."},
			never: []string{"sigs.k8s.io/controller-runtime/pkg/manager", "sigs.k8s.io/controller-runtime/pkg/webhook", "google.golang.org/grpc"},
		},
		"verbs know neither command lines nor pages": {
			of:    []string{"cmd/internal/steer"},
			never: []string{"github.com/spf13/cobra", module + "/cmd/kubectl-fleet/command", module + "/cmd/fleet-dashboard"},
		},
		"the dashboard runs no commands": {
			of:    []string{"cmd/fleet-dashboard/..."},
			never: []string{module + "/cmd/kubectl-fleet/command"},
		},
		"programs are imported by nobody but themselves": {
			of:    []string{"apis/...", "activities/...", "controllers/...", "worker/...", "workflows/..."},
			never: []string{module + "/cmd"},
		},
		"what is made for tests is no part of the product": {
			of:    []string{"apis/...", "activities/...", "cmd/...", "controllers/...", "worker/...", "workflows/..."},
			never: []string{module + "/test"},
		},
		"servers of the local fleet stay in modules of their own": {
			of:    []string{"..."},
			never: []string{"k8s.io/kubernetes", "k8s.io/apiserver", "go.etcd.io", "sigs.k8s.io/kwok", "go.temporal.io/server", "github.com/temporalio/cli", "github.com/prometheus/prometheus"},
		},
	}
}
