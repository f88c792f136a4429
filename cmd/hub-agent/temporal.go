package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/activities/stagedupdate"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/version"
	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Flags of the connection to Temporal, by name because errors say which one is wrong.
const (
	temporalAddressFlag    = "temporal-address"
	temporalNamespaceFlag  = "temporal-namespace"
	temporalApprovalsFlag  = "temporal-approvals"
	temporalModeFlag       = "temporal-mode"
	temporalPatienceFlag   = "temporal-patience"
	temporalTLSFlag        = "temporal-tls"
	temporalCAFlag         = "temporal-tls-ca-file"
	temporalCertFlag       = "temporal-tls-cert-file"
	temporalKeyFlag        = "temporal-tls-key-file"
	temporalServerNameFlag = "temporal-tls-server-name"
	temporalAPIKeyFlag     = "temporal-api-key-file"
	temporalDataFlag       = "temporal-data"
	temporalVersionsFlag   = "temporal-worker-versions"
	temporalBuildFlag      = "temporal-build"
	workflowCacheFlag      = "workflow-cache-size"

	// envTemporalAPIKey is the name that Temporal's own tools have for it.
	envTemporalAPIKey = "TEMPORAL_API_KEY"

	bundledAuditPokes = 100
)

// temporalOptions say where Temporal is and how the agent gets in.
type temporalOptions struct {
	// mode says whether Temporal is beside this agent, for this agent alone.
	mode clusterv1beta1.TemporalMode
	// patience is how long an agent that leads waits for the Temporal beside it; 0 is for ever.
	patience  time.Duration
	address   string
	namespace string
	// approvals says which approvals through Temporal count.
	approvals string
	// data is the folder of the database of a bundled one.
	data string
	// versioned has Temporal give tasks to one build only, that of the agent that leads; build names that of this agent.
	versioned bool
	build     string
	// cacheSize is how many workflows are kept in memory.
	cacheSize int
	security  temporalclient.Security
}

// addFlags adds the flags.
func (o *temporalOptions) addFlags(f *flag.FlagSet) {
	o.mode = clusterv1beta1.TemporalExternal
	f.Func(temporalModeFlag, "External (default), or Bundled: Temporal runs beside each agent, on its machine, for it alone. The agent that leads uses its own, and ends what it finds there before it begins", func(value string) error {
		o.mode = clusterv1beta1.TemporalMode(value)
		return nil
	})
	f.DurationVar(&o.patience, temporalPatienceFlag, 0, "how long an agent that leads waits for the Temporal beside it before it leaves the lease to another agent; 0 is for ever")
	f.StringVar(&o.address, temporalAddressFlag, "localhost:7233", "host:port of the Temporal frontend; it need not be up yet")
	f.StringVar(&o.namespace, temporalNamespaceFlag, wf.DefaultNamespace,
		"Temporal namespace; it is created, with its search attributes, if it does not exist")
	f.StringVar(&o.approvals, temporalApprovalsFlag, string(stagedupdate.ApprovalsVerified),
		"which approvals through Temporal count: off (none), verified (signals whose sender Temporal has authenticated, which needs a server with an authorizer and principals) or any: a user who may write to the Temporal namespace can send one under any name")
	f.StringVar(&o.data, temporalDataFlag, "", "folder of the database of the Temporal beside this agent; a metric has its size. Empty if there is none")
	f.BoolVar(&o.versioned, temporalVersionsFlag, false,
		"have Temporal give tasks only to workers of the same build as the agent that leads, also while agents of two builds run; it needs a server with Worker Deployments, 1.29 or newer")
	f.StringVar(&o.build, temporalBuildFlag, "", "name of this build for --"+temporalVersionsFlag+"; if it is empty, the version, and for what is no release also a sum of the program")
	f.IntVar(&o.cacheSize, workflowCacheFlag, 10_000,
		"how many workflows this process keeps in memory from one of their steps to the next, to replay no history; 0 replays it at each step, which is for tests")
	f.BoolVar(&o.security.TLS, temporalTLSFlag, false, "encrypt the connection to Temporal; implied by the other flags of TLS and by an API key")
	f.StringVar(&o.security.CAFile, temporalCAFlag, "", "PEM file of the certificates that vouch for Temporal's; those of the system do if it is empty. This file and the next two are read again for every new connection")
	f.StringVar(&o.security.CertFile, temporalCertFlag, "", "PEM file of the client certificate for Temporal, for mutual TLS; together with --"+temporalKeyFlag)
	f.StringVar(&o.security.KeyFile, temporalKeyFlag, "", "PEM file of the key of the client certificate for Temporal")
	f.StringVar(&o.security.ServerName, temporalServerNameFlag, "",
		"name that Temporal's certificate is made out to, if that is not the host of --"+temporalAddressFlag)
	f.StringVar(&o.security.APIKeyFile, temporalAPIKeyFlag, "",
		"file with the API key for Temporal, read again for every call; without it the environment variable "+envTemporalAPIKey+" counts")
}

// checkFlags names the flag that is wrong. Files are read now, so that a mistake shows at the start and not as a Temporal
// that seems to be away.
func (o *temporalOptions) checkFlags(lookup func(string) (string, bool)) error {
	if value, _ := lookup(envTemporalAPIKey); o.security.APIKeyFile == "" {
		o.security.APIKey = strings.TrimSpace(value)
	}
	var problems []error
	if _, port, err := net.SplitHostPort(o.address); err != nil || port == "" {
		problems = append(problems, fmt.Errorf("--%s is %q; it must be host:port, such as temporal-frontend.temporal:7233", temporalAddressFlag,
			o.address))
	}
	switch stagedupdate.ApprovalPolicy(o.approvals) {
	case stagedupdate.ApprovalsOff, stagedupdate.ApprovalsVerified:
	case stagedupdate.ApprovalsAny:
		if !o.security.Encrypted() && !isLoopback(o.address) {
			problems = append(problems, fmt.Errorf("--%s=any lets every client that reaches Temporal approve, and the connection to %s is not encrypted: "+
				"use --%s=verified, or encrypt the connection with --%s", temporalApprovalsFlag, o.address, temporalApprovalsFlag, temporalTLSFlag))
		}
	default:
		problems = append(problems, fmt.Errorf("--%s is %q; it must be off, verified or any", temporalApprovalsFlag, o.approvals))
	}
	if o.namespace == "" {
		problems = append(problems, fmt.Errorf("--%s must not be empty", temporalNamespaceFlag))
	}
	if o.cacheSize < 0 {
		problems = append(problems, fmt.Errorf("--%s must not be negative; 0 keeps none", workflowCacheFlag))
	}
	problems = append(problems, o.nameBuild()...)
	problems = append(problems, o.checkMode()...)
	return errors.Join(append(problems, o.checkFiles()...)...)
}

// bundled reports whether Temporal is beside this agent, for this agent alone.
func (o *temporalOptions) bundled() bool { return o.mode == clusterv1beta1.TemporalBundled }

// nameBuild names this build, if Temporal is to tell builds apart.
func (o *temporalOptions) nameBuild() []error {
	switch {
	case !o.versioned && o.build != "":
		return []error{fmt.Errorf("--%s names a build for --%s, which is not set", temporalBuildFlag, temporalVersionsFlag)}
	case !o.versioned || o.build != "":
		return nil
	}
	build, err := version.Build()
	if err != nil {
		return []error{fmt.Errorf("naming this build, which --%s can do as well: %w", temporalBuildFlag, err)}
	}
	o.build = build
	return nil
}

// auditPokes returns how many missing workflows are started in a second; 0 is the usual number. After a change of the leader the bundled
// server has none.
func (o *temporalOptions) auditPokes() int {
	if o.bundled() {
		return bundledAuditPokes
	}
	return 0
}

// checkMode refuses what does not go with the mode.
func (o *temporalOptions) checkMode() []error {
	var problems []error
	switch {
	case o.patience < 0:
		problems = append(problems, fmt.Errorf("--%s must not be negative; 0 is for ever", temporalPatienceFlag))
	case o.mode != clusterv1beta1.TemporalExternal && !o.bundled():
		problems = append(problems, fmt.Errorf("--%s is %q; it must be %s or %s", temporalModeFlag, o.mode, clusterv1beta1.TemporalBundled,
			clusterv1beta1.TemporalExternal))
	case !o.bundled() && o.patience > 0:
		problems = append(problems, fmt.Errorf("--%s is for --%s=%s: all agents share an external Temporal", temporalPatienceFlag,
			temporalModeFlag, clusterv1beta1.TemporalBundled))
	}
	if !o.bundled() {
		return problems
	}
	if !isLoopback(o.address) || o.security.Encrypted() {
		problems = append(problems, fmt.Errorf("--%s=%s takes the Temporal of this machine, over a connection that is not encrypted, and --%s is %s: leave out what is for an external one",
			temporalModeFlag, o.mode, temporalAddressFlag, o.address))
	}
	if stagedupdate.ApprovalPolicy(o.approvals) == stagedupdate.ApprovalsVerified {
		problems = append(problems, fmt.Errorf("--%s=verified takes no approval with --%s=%s, whose Temporal names no senders: use off, or any for all who may forward ports to the Pod",
			temporalApprovalsFlag, temporalModeFlag, o.mode))
	}
	return problems
}

// isLoopback reports whether an address stays on this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

func (o *temporalOptions) checkFiles() []error {
	var problems []error
	s := &o.security
	if s.CAFile != "" {
		if _, err := temporalclient.ReadAuthorities(s.CAFile); err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", temporalCAFlag, err))
		}
	}
	switch {
	case s.CertFile == "" && s.KeyFile != "":
		problems = append(problems, fmt.Errorf("--%s needs --%s", temporalKeyFlag, temporalCertFlag))
	case s.CertFile != "" && s.KeyFile == "":
		problems = append(problems, fmt.Errorf("--%s needs --%s", temporalCertFlag, temporalKeyFlag))
	case s.CertFile != "":
		if _, err := temporalclient.ReadCertificate(s.CertFile, s.KeyFile); err != nil {
			problems = append(problems, fmt.Errorf("--%s and --%s: %w", temporalCertFlag, temporalKeyFlag, err))
		}
	}
	if s.APIKeyFile != "" {
		if _, err := temporalclient.ReadAPIKey(s.APIKeyFile); err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", temporalAPIKeyFlag, err))
		}
	}
	return problems
}
