//go:build integration

package charts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// fleetEnv names the folder of a running fleet to use; it needs no agents.
const fleetEnv = "FLEETFLOW_CHARTS_FLEET"

// agentStop bounds how long a process may take to end.
const agentStop = 30 * time.Second

// fleet is a hub, a member and Temporal, without agents.
type fleet struct {
	dir      string
	bin      string
	temporal string
	tools    map[string]string
	started  []*agent
}

// agent is a process that stands for the Pods of a Deployment.
type agent struct {
	name, program string
	args, env     []string
	account       string
	health, log   string
	metrics       string
	// secrets are the folders that Secrets are mounted at.
	secrets map[string]string
	// temporal is the sidecar of the Pod, if it has one.
	temporal *agent
	process  *exec.Cmd
}

// kill ends a process as the kernel does when there is no memory.
func (a *agent) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, a.process.Process.Kill())
	_ = a.process.Wait() // it was killed
}

// stop ends the process as the kubelet does: an agent that leads gives its lease back.
func (a *agent) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, a.process.Process.Signal(syscall.SIGTERM))
	_ = a.process.Wait() // how it ended does not matter here
}

var (
	once   sync.Once
	shared *fleet
)

// TestMain takes the fleet down that the tests have brought up.
func TestMain(m *testing.M) {
	code := m.Run()
	if shared != nil && os.Getenv(fleetEnv) == "" {
		_ = devfleet("down", "--dir", shared.dir, "--purge") // it says itself what is wrong
	}
	os.Exit(code)
}

func devfleet(args ...string) error {
	command := exec.Command("go", append([]string{"run", "./test/devfleet"}, args...)...)
	command.Dir = root
	command.Stdout = os.Stdout
	command.Stderr = os.Stderr
	return command.Run()
}

// bringUp returns the fleet that all tests share.
func bringUp(t *testing.T) *fleet {
	t.Helper()
	once.Do(func() {
		dir := os.Getenv(fleetEnv)
		if dir == "" {
			dir, _ = filepath.Abs(filepath.Join(root, ".fleet-charts"))
			if err := devfleet("up", "--dir", dir, "--members", "1", "--without-agents"); err != nil {
				t.Log(err)
				return
			}
		}
		shared = &fleet{dir: dir}
	})
	require.NotNil(t, shared, "the fleet did not come up")
	content, err := os.ReadFile(filepath.Join(shared.dir, "fleet.json"))
	require.NoError(t, err)
	var state struct {
		Ports map[string]int    `json:"ports"`
		Tools map[string]string `json:"tools"`
	}
	require.NoError(t, json.Unmarshal(content, &state))
	f := &fleet{dir: shared.dir, tools: state.Tools, temporal: fmt.Sprintf("127.0.0.1:%d", state.Ports["temporal"]), bin: t.TempDir()}
	return f
}

func (f *fleet) tool(name string) string { return f.tools[name] }

// cluster returns an administrator's access to a cluster.
func (f *fleet) cluster(t *testing.T, name string) *cluster {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: filepath.Join(f.dir, "kubeconfig")},
		&clientcmd.ConfigOverrides{CurrentContext: name},
	).ClientConfig()
	require.NoError(t, err)
	if config.CAFile != "" {
		config.CAData, err = os.ReadFile(config.CAFile)
		require.NoError(t, err)
	}
	config.QPS = 100
	config.Burst = 200
	return newCluster(t, f, name, config)
}

// pod is what a kubelet makes of a Pod's template: its arguments and its environment, with volumes in a folder.
type pod struct {
	args, env []string
	secrets   map[string]string
}

// inPod mounts the volumes of a container below a folder; secret returns the content of a Secret.
func inPod(t *testing.T, spec corev1.PodSpec, container *corev1.Container, dir string, secret func(name string) map[string][]byte) pod {
	t.Helper()
	p := pod{secrets: map[string]string{}}
	var moves []string
	for _, m := range container.VolumeMounts {
		at := filepath.Join(dir, m.Name)
		require.NoError(t, os.MkdirAll(at, 0o700))
		moves = append(moves, m.MountPath, at)
		for _, v := range spec.Volumes {
			if v.Name == m.Name && v.Secret != nil {
				p.secrets[v.Secret.SecretName] = at
				mount(t, at, secret(v.Secret.SecretName))
			}
		}
	}
	moved := strings.NewReplacer(moves...)
	for _, arg := range container.Args {
		p.args = append(p.args, moved.Replace(arg))
	}
	for _, e := range container.Env {
		p.env = append(p.env, e.Name+"="+moved.Replace(e.Value))
	}
	return p
}

// mount writes the content of a Secret as a kubelet does: into a folder of its own, to which a link is then turned, so that
// all of it changes at once.
func mount(t *testing.T, at string, content map[string][]byte) {
	t.Helper()
	folder, err := os.MkdirTemp(at, "..")
	require.NoError(t, err)
	for key, value := range content {
		require.NoError(t, os.WriteFile(filepath.Join(folder, key), value, 0o600))
		if err := os.Symlink(filepath.Join("..data", key), filepath.Join(at, key)); !errors.Is(err, fs.ErrExist) {
			require.NoError(t, err)
		}
	}
	require.NoError(t, os.Symlink(filepath.Base(folder), filepath.Join(at, "..data_tmp")))
	require.NoError(t, os.Rename(filepath.Join(at, "..data_tmp"), filepath.Join(at, "..data")))
}

// build builds a program of this repository.
func (f *fleet) build(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(f.bin, name)
	command := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/"+name)
	command.Dir = root
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return program
}

// start starts a process that ends with the test.
func (f *fleet) start(t *testing.T, a *agent) {
	t.Helper()
	a.log = filepath.Join(t.TempDir(), a.name+".log")
	log, err := os.Create(a.log)
	require.NoError(t, err)
	command := exec.Command(a.program, a.args...)
	command.Env = append(os.Environ(), a.env...)
	command.Stdout = log
	command.Stderr = log
	require.NoError(t, command.Start(), a.program)
	a.process = command
	f.started = append(f.started, a)
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		kill := time.AfterFunc(agentStop, func() { _ = command.Process.Kill() })
		_ = command.Wait()
		kill.Stop()
		log.Close()
		if t.Failed() {
			content, _ := os.ReadFile(a.log)
			t.Logf("===== the end of the log of %s\n%s", a.name, content[max(0, len(content)-8000):])
		}
	})
}

// ask asks an agent for its health.
func (f *fleet) ask(t *testing.T, a *agent, path string) (code int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.health+path, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// answers says whether an agent is well, as a whole or in one thing.
func (f *fleet) answers(t *testing.T, a *agent, path string) bool {
	t.Helper()
	code, _ := f.ask(t, a, path)
	return code == http.StatusOK
}

// requireWell asks an agent for the health of all it depends on.
func (f *fleet) requireWell(t *testing.T, a *agent) {
	t.Helper()
	code, text := f.ask(t, a, "/readyz?verbose")
	require.Equal(t, http.StatusOK, code, "%s: %s", a.name, text)
}

func (f *fleet) command(ctx context.Context, program string, args ...string) error {
	output, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, patience, every, what)
}

func decode64(t *testing.T, text string) []byte {
	t.Helper()
	content, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	return content
}
