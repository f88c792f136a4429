package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/command"
	"github.com/fleetflow/fleetflow/test/needs"
)

const (
	// patience is how long a page may take to be as a test wants it. It is generous: a page is that within a second, unless
	// the machine is busy.
	patience = 90 * time.Second
	// glance is how often a test looks.
	glance = 20 * time.Millisecond
	// anyPort is where dashboards listen.
	anyPort = "127.0.0.1:0"
	// elsewhere is another site, for the browser: its name leads to this machine.
	elsewhere = "elsewhere.example"
)

// chromium is the one browser of all tests; each tab has cookies of its own, as if it were a browser of another user.
var chromium context.Context

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // as kubectl-fleet does
	path, err := needs.Find(context.Background(), "../..", needs.Browser)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(runWith(m, path))
}

func runWith(m *testing.M, path string) int {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.WindowSize(1280, 900),
		chromedp.NoSandbox, // root, as in CI, cannot have one; all pages are ours
		// Names of other sites are served without TLS here.
		chromedp.Flag("disable-features", "Translate,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable"),
		chromedp.Flag("host-resolver-rules", "MAP "+elsewhere+" 127.0.0.1"),
		chromedp.WSURLReadTimeout(patience),
	)
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	ctx, closeBrowser := chromedp.NewContext(allocator)
	defer closeBrowser()
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "starting %s: %v\n", path, err)
		return 1
	}
	chromium = ctx
	return m.Run()
}

// dashboard is `kubectl fleet dashboard` of a user.
type dashboard struct {
	// address is where it listens, link what it has printed.
	address, link string
	end           func()
}

// serve starts a dashboard of a client, at an address: 127.0.0.1:0 is any.
func serve(t testing.TB, as client.WithWatch, address string) *dashboard {
	t.Helper()
	f := cli.NewFactory()
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"hub-europe","contexts":[{"name":"hub-europe","context":{"cluster":"hub"}}],"clusters":[{"name":"hub","cluster":{"server":"https://192.0.2.1"}}]}`), 0o600))
	f.Flags.KubeConfig = &config
	f.Connect = func(*rest.Config) (client.WithWatch, error) { return as, nil }
	f.Discover = servedKinds
	return serveFrom(t, f, address)
}

// servedKinds are the kinds that the hub serves.
func servedKinds() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	verbs := metav1.Verbs{"get", "list", "watch", "create"}
	return nil, []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "namespaces", Kind: "Namespace", Verbs: verbs}, {Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: verbs}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: verbs}}},
	}, nil
}

// serveFrom starts a dashboard as a user with the clients of a factory.
func serveFrom(t testing.TB, f *cli.Factory, address string) *dashboard {
	t.Helper()
	out, printed := io.Pipe()
	cmd := command.NewDashboard(f, genericiooptions.IOStreams{In: strings.NewReader(""), Out: printed, ErrOut: io.Discard})
	cmd.SilenceUsage = true
	cmd.SilenceErrors = true
	cmd.SetArgs([]string{"--address", address})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		_ = printed.CloseWithError(io.EOF)
		ended <- err
	}()
	d := &dashboard{end: sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
	})}
	t.Cleanup(d.end)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "the dashboard prints a link")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	d.link = strings.TrimSpace(line)
	parsed, err := url.Parse(d.link)
	require.NoError(t, err)
	d.address = parsed.Host
	return d
}

// tab is a tab of a browser that has opened the link of a dashboard.
type tab struct {
	t    testing.TB
	ctx  context.Context
	base string

	mutex    sync.Mutex
	problems []string
	// expected are parts of complaints of the browser that the test causes on purpose.
	expected []string
}

// browse opens the link of a dashboard in a browser that knows nothing yet. At the end of the test the browser must not have
// complained.
func browse(t testing.TB, d *dashboard) *tab {
	t.Helper()
	x := newTab(t, "http://"+d.address)
	x.visit(d.link)
	return x
}

func newTab(t testing.TB, base string) *tab {
	t.Helper()
	x := &tab{t: t, base: base}
	ctx, closeTab := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext(), chromedp.WithListener(x.hear))
	x.ctx = ctx
	t.Cleanup(closeTab)
	require.NoError(t, chromedp.Do(ctx))
	// Pages are shown, however many there are: a page in the background closes its stream.
	_, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	require.NoError(t, err)
	x.size(1280, 900)
	t.Cleanup(x.complain)
	return x
}

// hear notes errors of scripts, and what the browser refuses: by the policy of the page, or because it is not there.
func (x *tab) hear(event any) {
	said := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			said += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			args, _ := json.Marshal(e.Args)
			said = string(args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning || e.Entry.Source == log.EntrySourceSecurity {
			said = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if said == "" {
		return
	}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.problems = append(x.problems, said)
}

// expect names complaints of the browser that are no mistake.
func (x *tab) expect(parts ...string) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.expected = append(x.expected, parts...)
}

func (x *tab) complain() {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	for _, problem := range x.problems {
		if !containsAny(problem, x.expected) {
			x.t.Errorf("the browser complains: %s", problem)
		}
	}
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// bounded is the context of one step, which fails rather than to hang.
func (x *tab) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(x.ctx, patience)
}

func (x *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	x.t.Helper()
	ctx, cancel := x.bounded()
	defer cancel()
	require.NoError(x.t, chromedp.Do(ctx, steps...))
}

// visit shows a URL, open a page of the dashboard.
func (x *tab) visit(address string) {
	x.t.Helper()
	x.do(chromedp.Navigate(address))
}

func (x *tab) open(path string) {
	x.t.Helper()
	x.visit(x.base + path)
}

func (x *tab) size(width, height int64) {
	x.t.Helper()
	x.do(chromedp.EmulateViewport(width, height))
}

// scheme has the user prefer light or dark.
func (x *tab) scheme(name string) {
	x.t.Helper()
	_, err := chromedp.Call(x.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	require.NoError(x.t, err)
}

// ask is what an expression is in the page.
func ask[T any](x *tab, expression string) T {
	x.t.Helper()
	ctx, cancel := x.bounded()
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(x.t, err, expression)
	return value
}

// until waits until an expression is true in the page, whatever page that is by then.
func (x *tab) until(expression string) {
	x.t.Helper()
	ctx, cancel := x.bounded()
	defer cancel()
	for ctx.Err() == nil {
		// A page that is just being left cannot be asked.
		if is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")")); err == nil && is {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(glance):
		}
	}
	require.Failf(x.t, "the page does not become as it should", "%s\n%s\n%v", expression, x.text(), x.problems)
}

// shows waits until a text can be read on the page.
func (x *tab) shows(text string) {
	x.t.Helper()
	quoted, _ := json.Marshal(text)
	x.until("document.body && document.body.innerText.replace(/\\s+/g, ' ').includes(" + string(quoted) + ")")
}

// isAt waits until a page is shown and loaded.
func (x *tab) isAt(path string) {
	x.t.Helper()
	quoted, _ := json.Marshal(path)
	x.until("location.pathname + location.search === " + string(quoted) + " && document.readyState === 'complete'")
}

// isLive waits until the page is kept up to date.
func (x *tab) isLive() {
	x.t.Helper()
	x.until("document.querySelector('main')._htmx?.sse?.reader")
}

func (x *tab) text() string {
	x.t.Helper()
	return ask[string](x, "document.body ? document.body.innerText : ''")
}

// click presses what a selector finds, as the user does.
func (x *tab) click(selector string) {
	x.t.Helper()
	x.do(chromedp.Click(chromedp.CSS(selector)))
}
