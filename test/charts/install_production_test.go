//go:build integration

package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// walk is an operator on the way through the production page. The hub is a cluster with nodes that are played, as are Pods and
// Temporal's chart. All else is done by the printed commands. The member is the local fleet's hub, which has nothing of a member agent yet.
type walk struct {
	*operator
	hub, member *cluster
	// server is the address of Temporal, ports are those of its services.
	server string
	ports  []int
	// database is where Temporal keeps its data.
	database *postgresql
	// ends end what plays an agent, by the name of its Deployment and its cluster.
	ends map[string]func()
}

// TestInstalledAsTheProductionPageSays walks through the page from the first command to the last, and then leaves out one thing after the
// other: each makes `check --strict` end with 1, and the way back makes it end with 0.
func TestInstalledAsTheProductionPageSays(t *testing.T) {
	w := newWalk(t)
	for _, command := range printedCommands(t, productionPage) {
		w.take(command)
	}
	t.Run("as who may look", func(t *testing.T) {
		w.run("kubectl create clusterrolebinding looks --clusterrole=hub-agent-viewer --user=jane && kubectl create clusterrolebinding views --clusterrole=view --user=jane")
		out, err := w.command("kubectl fleet check --strict --as jane").CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	for _, omission := range w.omissions() {
		t.Run("without "+omission.what, func(t *testing.T) {
			omission.leave(t)
			w.awaitCheck(t, false, omission.said)
			omission.back(t)
			w.awaitCheck(t, true, "")
		})
	}
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	programs := postgresqlPrograms(t)
	dir, err := filepath.Abs(filepath.Join(root, ".fleet-production"))
	require.NoError(t, err)
	require.NoError(t, devfleet("up", "--dir", dir, "--members", "1", "--without-agents"))
	t.Cleanup(func() { _ = devfleet("down", "--dir", dir, "--purge") }) // it says itself what is wrong
	content, err := os.ReadFile(filepath.Join(dir, "fleet.json"))
	require.NoError(t, err)
	var state struct {
		Tools map[string]string `json:"tools"`
	}
	require.NoError(t, json.Unmarshal(content, &state))
	f := &fleet{dir: dir, tools: state.Tools, bin: t.TempDir()}
	w := &walk{operator: newOperator(t, f), hub: f.cluster(t, "member-1"), member: f.cluster(t, "hub"), ends: map[string]func(){}}
	w.kubeconfig, w.folder = w.contexts(t), w.clone(t)
	for range 10 {
		w.ports = append(w.ports, portForTemporal(t))
	}
	w.server = fmt.Sprintf("127.0.0.1:%d", w.ports[0])
	// What the page asks for beside the clusters: a database with a user, its password, and the kinds of the Prometheus operator.
	w.database = startPostgreSQL(t, programs, "temporal", databasePassword)
	for _, kind := range []string{"ServiceMonitor", "PodMonitor", "PrometheusRule"} {
		w.hub.apply(t, manifest(operatorKind(kind)))
	}
	w.hub.mapper.Reset()
	require.NoError(t, os.WriteFile(filepath.Join(w.folder, "postgresql-password"), []byte(databasePassword), 0o600))
	return w
}

// databasePassword is that of the user whom Temporal calls its database as.
const databasePassword = "secret-of-temporal"

// contexts writes a kubeconfig with the names that the page prints; the hub is the current context.
func (w *walk) contexts(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(filepath.Join(w.fleet.dir, "kubeconfig"))
	require.NoError(t, err)
	require.NoError(t, clientcmd.ResolveLocalPaths(config))
	config.Contexts = map[string]*clientcmdapi.Context{"hub": config.Contexts[w.hub.name], "member-1": config.Contexts[w.member.name]}
	config.CurrentContext = "hub"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

// clone is a folder with what the commands name of the repository, and room for what they write.
func (w *walk) clone(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	deploy, err := filepath.Abs(filepath.Join(root, "deploy"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(deploy, filepath.Join(folder, "deploy")))
	return folder
}

// portForTemporal is a port that no other process listens on. PostgreSQL has room for ports up to 32767 in Temporal's list of servers.
func portForTemporal(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			require.NoError(t, listener.Close())
			return port
		}
	}
	require.Fail(t, "no port is free")
	return 0
}

// operatorKind is a CRD of the Prometheus operator's, which takes whatever it is given.
func operatorKind(kind string) string {
	plural := strings.ToLower(kind) + "s"
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ` + kind + `, plural: ` + plural + `}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]`
}

// take takes a printed command: as it is, or with what it needs that is played.
func (w *walk) take(command string) {
	t := w.t
	t.Log("$ " + command)
	switch {
	case strings.HasPrefix(command, "make images "):
		// No registry: no image is pulled by Pods that are played.
	case strings.HasPrefix(command, "helm install temporal "):
		w.makeSchemas()
		w.startTemporal()
	case strings.HasPrefix(command, "kubectl fleet init "):
		w.awaitCheck(t, false, "this cluster is no hub")
		end := w.start(command)
		w.playHub()
		t.Log(end())
	case strings.HasPrefix(command, "kubectl fleet join member-1 "):
		w.awaitCheck(t, false, "no cluster is a member")
		end := w.start(strings.Replace(command, "https://hub.example.com:6443", w.hub.config.Host, 1))
		w.playMember()
		t.Log(end())
	case command == "kubectl fleet check --strict":
		w.awaitCheck(t, true, "")
	case strings.HasPrefix(command, "kubectl "), strings.HasPrefix(command, "deploy/charts/hub-agent/examples/temporal-credentials.sh "):
		t.Log(w.run(command))
	default:
		require.Fail(t, "the walk does not know this command of the page", command)
	}
}

// playHub plays the agents of the hub, which find Temporal by the name that the cluster's DNS would have.
func (w *walk) playHub() {
	for _, name := range []string{"hub-agent", "hub-agent-workers"} {
		w.ends[name] = w.hub.playAs(w.t, name, "hub-agent", "--temporal-address="+w.server, "--temporal-tls-server-name=temporal-frontend.temporal")
	}
}

func (w *walk) playMember() { w.ends["member-agent"] = w.member.play(w.t, "member-agent") }

func (w *walk) end(names ...string) {
	for _, name := range names {
		w.ends[name]()
	}
}

// chartReadme has the commands by which Temporal's databases and their schemas are made.
const chartReadme = root + "/deploy/charts/hub-agent/README.md"

// makeSchemas does what the chart's Job does for createDatabase and manageSchema, with the commands that the chart's README prints.
func (w *walk) makeSchemas() {
	w.t.Helper()
	password := w.hub.secret(w.t, "temporal", "temporal-postgresql")["password"]
	where := fmt.Sprintf("export SQL_PLUGIN=postgres12 SQL_HOST=127.0.0.1 SQL_PORT=%s SQL_USER=temporal SQL_PASSWORD='%s'; ", w.database.port, password)
	made := 0
	for _, command := range printedCommands(w.t, chartReadme) {
		if arguments, is := strings.CutPrefix(command, "temporal-sql-tool "); is {
			w.t.Log("$ " + command)
			w.run(where + w.temporalProgram("temporal-sql-tool") + " " + arguments)
			made++
		}
	}
	require.Equal(w.t, 6, made, "a database, the first version of its schema and the newest one, for histories and for what is listed")
}

// startTemporal starts Temporal's server for production as its chart does with the example's values: with the Secrets that they name
// mounted, their TLS and authorization, and their database.
func (w *walk) startTemporal() {
	t := w.t
	t.Helper()
	program := w.temporalProgram("temporal-server")
	v := readValues(t, examples+"/temporal-postgresql.yaml")["server"].(map[string]any)
	dir := t.TempDir()
	var moves []string
	secrets := map[string]string{}
	for _, volume := range v["additionalVolumes"].([]any) {
		volume := volume.(map[string]any)
		secrets[volume["name"].(string)] = volume["secret"].(map[string]any)["secretName"].(string)
	}
	for _, m := range v["additionalVolumeMounts"].([]any) {
		m := m.(map[string]any)
		at := filepath.Join(dir, m["name"].(string))
		require.NoError(t, os.MkdirAll(at, 0o700))
		mount(t, at, w.hub.secret(t, "temporal", secrets[m["name"].(string)]))
		moves = append(moves, m["mountPath"].(string), at)
	}
	// The container beside the server.
	keys := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(dir, "keys"))))
	t.Cleanup(keys.Close)
	moves = append(moves, "http://127.0.0.1:8089", keys.URL)
	config := v["config"].(map[string]any)
	persistence := w.persistence(config["persistence"].(map[string]any))
	given, err := json.Marshal(values{"tls": config["tls"], "authorization": config["authorization"]})
	require.NoError(t, err)
	var global values
	require.NoError(t, json.Unmarshal([]byte(strings.NewReplacer(moves...).Replace(string(given))), &global))
	global["membership"] = values{"maxJoinDuration": "30s", "broadcastAddress": "127.0.0.1"}
	dynamic, err := yaml.Marshal(v["dynamicConfig"])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dynamic.yaml"), dynamic, 0o600))
	content, err := yaml.Marshal(w.temporalConfig(dir, global, persistence))
	require.NoError(t, err)
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, content, 0o600))

	running, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(running, program, "--config-file", file, "start",
		"--service", "frontend", "--service", "internal-frontend", "--service", "history", "--service", "matching", "--service", "worker")
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	command.Stdout = log
	command.Stderr = log
	require.NoError(t, command.Start())
	ended := false
	w.ends["temporal"] = func() {
		if ended {
			return
		}
		ended = true
		stop()
		_ = command.Wait() // it was told to end
		log.Close()
		if t.Failed() {
			content, _ := os.ReadFile(log.Name())
			t.Logf("===== the end of the log of Temporal\n%s", content[max(0, len(content)-4000):])
		}
	}
	t.Cleanup(w.ends["temporal"])
}

// persistence is what the values say of the database, as the chart writes it into the server's configuration: with the password of the
// Secret. Only the address is another one.
func (w *walk) persistence(said map[string]any) values {
	w.t.Helper()
	stores := values{}
	for name, store := range said["datastores"].(map[string]any) {
		sql := values{}
		for key, value := range store.(map[string]any)["sql"].(map[string]any) {
			switch key {
			case "existingSecret", "secretKey", "createDatabase", "manageSchema", "driverName":
				// The chart's own.
			case "connectAddr":
				sql[key] = "127.0.0.1:" + w.database.port
			default:
				sql[key] = value
			}
		}
		from := store.(map[string]any)["sql"].(map[string]any)
		secret := w.hub.secret(w.t, "temporal", from["existingSecret"].(string))
		sql["password"] = string(secret[from["secretKey"].(string)])
		stores[name] = values{"sql": sql}
	}
	return values{
		"defaultStore": said["defaultStore"], "visibilityStore": said["visibilityStore"], "numHistoryShards": said["numHistoryShards"],
		"datastores": stores,
	}
}

// temporalConfig is the configuration of a server, as Temporal's chart makes it otherwise.
func (w *walk) temporalConfig(dir string, global, persistence values) values {
	services := values{}
	for i, service := range []string{"frontend", "internal-frontend", "history", "matching", "worker"} {
		services[service] = values{"rpc": values{"grpcPort": w.ports[2*i], "membershipPort": w.ports[2*i+1], "bindOnLocalHost": true}}
	}
	disabled := values{"history": values{"state": "disabled"}, "visibility": values{"state": "disabled"}}
	return values{
		"log": values{"stdout": true, "level": "warn"}, "global": global, "services": services,
		"persistence": persistence,
		"clusterMetadata": values{
			"failoverVersionIncrement": 10, "masterClusterName": "active", "currentClusterName": "active",
			"clusterInformation": values{"active": values{"enabled": true, "initialFailoverVersion": 1, "rpcName": "frontend", "rpcAddress": w.server}},
		},
		"dcRedirectionPolicy": values{"policy": "noop"}, "archival": disabled, "namespaceDefaults": values{"archival": disabled},
		"dynamicConfigClient": values{"filepath": filepath.Join(dir, "dynamic.yaml"), "pollInterval": "10s"},
	}
}

// temporalProgram is a program of Temporal's for production, built if it has not been.
func (w *walk) temporalProgram(name string) string {
	require.NoError(w.t, devfleet("tools", "--with-temporal-server"))
	list := exec.CommandContext(w.t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "go.temporal.io/server")
	list.Dir = filepath.Join(root, "test", "controlplane")
	version, err := list.Output()
	require.NoError(w.t, err)
	tools := filepath.Dir(filepath.Dir(w.fleet.tool("temporal")))
	return filepath.Join(tools, "temporal-server-"+strings.TrimSpace(string(version)), name)
}

// check runs `check --strict` and returns whether it ends with 0, and what it prints.
func (w *walk) check(t *testing.T) (well bool, said string) {
	t.Helper()
	out, err := w.command("kubectl fleet check --strict").CombinedOutput()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return err == nil, string(out)
}

// awaitCheck waits until `check --strict` is well, or until it is not and says something.
func (w *walk) awaitCheck(t *testing.T, well bool, says string) {
	t.Helper()
	var last string
	ok := assert.Eventually(t, func() bool {
		is, said := w.check(t)
		last = said
		return is == well && strings.Contains(said, says)
	}, patience, time.Second, "check --strict: well %t, with %q", well, says)
	t.Log(last)
	require.True(t, ok)
}

// omission is something that an install may lack.
type omission struct {
	what string
	// said is a part of what the check says of it.
	said        string
	leave, back func(t *testing.T)
}

func (w *walk) omissions() []omission {
	hubAgents := []string{"hub-agent", "hub-agent-workers"}
	renew := func(*testing.T) {
		w.end(hubAgents...)
		w.run("deploy/charts/hub-agent/examples/temporal-credentials.sh fleet-keys")
		w.playHub()
	}
	return []omission{
		{
			"Temporal", "has not reached Temporal",
			func(*testing.T) { w.end("temporal") },
			func(*testing.T) { w.startTemporal() },
		},
		{
			"Temporal's database", "has not reached Temporal",
			func(*testing.T) { w.database.end() },
			func(*testing.T) { w.database.start() },
		},
		{
			"a hub agent that leads", "no hub agent holds the lease",
			func(*testing.T) { w.end(hubAgents...) },
			func(*testing.T) { w.playHub() },
		},
		{
			"a certificate that Temporal takes", "has not reached Temporal",
			func(t *testing.T) {
				w.end(hubAgents...)
				certificate, key := newAuthority(t, "another").pair(t, "hub-agent")
				w.withSecret(t, map[string][]byte{"tls.crt": certificate, "tls.key": key})
				w.playHub()
			},
			renew,
		},
		{
			"a kind of the fleet", "and 1 not: RolloutHold.fleetflow.io",
			func(t *testing.T) {
				w.run("kubectl annotate crd rolloutholds.fleetflow.io fleetflow.io/allow-deletion=true")
				w.run("kubectl delete crd rolloutholds.fleetflow.io --wait=true")
			},
			func(*testing.T) {
				w.run("helm show crds deploy/charts/hub-agent | kubectl apply --server-side --force-conflicts -f -")
			},
		},
		{
			"the second agent", "Deployment fleet-system/hub-agent has 1 of 2 replicas ready",
			func(*testing.T) { w.run("kubectl get nodes --output name | xargs kubectl cordon; " + oneAgent) },
			func(*testing.T) { w.run("kubectl get nodes --output name | xargs kubectl uncordon") },
		},
		{
			"the label of its namespace", "namespace fleet-system admits privileged Pods",
			func(*testing.T) { w.run("kubectl label namespace fleet-system pod-security.kubernetes.io/enforce-") },
			func(*testing.T) {
				w.run("kubectl label namespace fleet-system pod-security.kubernetes.io/enforce=restricted")
			},
		},
		{
			"an agent on the member", "member-1 has not reported for",
			func(*testing.T) { w.end("member-agent") },
			func(*testing.T) { w.playMember() },
		},
	}
}

// oneAgent deletes one Pod of the hub agent; another one finds no node.
const oneAgent = `kubectl -n fleet-system delete "$(kubectl -n fleet-system get pod --selector app.kubernetes.io/component=agent --output name | head -1)"`

// withSecret writes entries of the Secret that the hub agents mount.
func (w *walk) withSecret(t *testing.T, entries map[string][]byte) {
	t.Helper()
	data := w.hub.secret(t, namespace, "temporal-client")
	for key, content := range entries {
		require.Contains(t, data, key)
		data[key] = content
	}
	w.hub.keep(t, "temporal-client", data)
}
