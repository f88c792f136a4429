package toolchain

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// release is where a publisher puts a program of a version. In its texts, {tag} is the version with its v, {number} the version
// without it, {os} and {arch} what Go calls the platform.
type release struct {
	// file is the URL of what is downloaded.
	file string
	// member is the path of the program in the file, a .tar.gz; empty when the file is the program itself.
	member string
	// sums is the URL of what says the file's SHA-256, read by sumsForm.
	sums     string
	sumsForm sumsForm
}

// sumsForm is how checksums are written down.
type sumsForm int

const (
	// sumAlone is a file with nothing but the checksum of one file.
	sumAlone sumsForm = iota
	// sumPerLine is the output of sha256sum.
	sumPerLine
	// gitHubDigest is the answer of GitHub's API for a release, which has the SHA-256 that GitHub computed of each file as it
	// was uploaded.
	gitHubDigest
)

// releasedPlatforms are those for which every publisher below has its program.
var releasedPlatforms = []string{"linux/amd64", "linux/arm64"}

// releases are the publishers' releases by the name of the program; what is not here is built.
var releases = map[string]release{
	// https://kubernetes.io/docs/tasks/tools/install-kubectl-linux/ downloads kubectl so and checks it; all programs of a release lie
	// beside it.
	"kube-apiserver":          kubernetesRelease("kube-apiserver"),
	"kube-controller-manager": kubernetesRelease("kube-controller-manager"),
	"kube-scheduler":          kubernetesRelease("kube-scheduler"),
	"kubectl":                 kubernetesRelease("kubectl"),
	Kubelet:                   kubernetesRelease(Kubelet),
	KubeProxy:                 kubernetesRelease(KubeProxy),
	// Written by scripts/release.sh of github.com/etcd-io/etcd; https://etcd.io/docs/v3.6/install/ names the page of releases.
	"etcd": {
		file:   "https://github.com/etcd-io/etcd/releases/download/{tag}/etcd-{tag}-{os}-{arch}.tar.gz",
		member: "etcd-{tag}-{os}-{arch}/etcd",
		sums:   "https://github.com/etcd-io/etcd/releases/download/{tag}/SHA256SUMS", sumsForm: sumPerLine,
	},
	// https://kwok.sigs.k8s.io/docs/user/installation/ downloads it so. The project publishes no checksums (hack/releases.sh uploads
	// the programs alone), but GitHub does: https://docs.github.com/en/rest/releases/releases.
	"kwok": {
		file: "https://github.com/kubernetes-sigs/kwok/releases/download/{tag}/kwok-{os}-{arch}",
		sums: "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/{tag}", sumsForm: gitHubDigest,
	},
	// Written by GoReleaser as .goreleaser.yml of github.com/temporalio/cli says.
	"temporal": {
		file:   "https://github.com/temporalio/cli/releases/download/{tag}/temporal_cli_{number}_{os}_{arch}.tar.gz",
		member: "temporal",
		sums:   "https://github.com/temporalio/cli/releases/download/{tag}/checksums.txt", sumsForm: sumPerLine,
	},
	// https://prometheus.io/download/ lists the files and their checksums.
	Prometheus: {
		file:   "https://github.com/prometheus/prometheus/releases/download/{tag}/prometheus-{number}.{os}-{arch}.tar.gz",
		member: "prometheus-{number}.{os}-{arch}/prometheus",
		sums:   "https://github.com/prometheus/prometheus/releases/download/{tag}/sha256sums.txt", sumsForm: sumPerLine,
	},
}

func kubernetesRelease(binary string) release {
	file := "https://dl.k8s.io/release/{tag}/bin/{os}/{arch}/" + binary
	return release{file: file, sums: file + ".sha256", sumsForm: sumAlone}
}

// releaseOf returns where the release of a pinned program is for a platform such as linux/amd64; false where there is none.
func (p pinned) releaseOf(platform string) (release, bool) {
	r, found := releases[p.Binary]
	if !found || !slices.Contains(releasedPlatforms, platform) {
		return release{}, false
	}
	system, arch, _ := strings.Cut(platform, "/")
	fill := strings.NewReplacer("{tag}", p.releaseVersion(), "{number}", withoutV(p.releaseVersion()), "{os}", system, "{arch}", arch)
	r.file, r.member, r.sums = fill.Replace(r.file), fill.Replace(r.member), fill.Replace(r.sums)
	return r, true
}

// findSum returns the SHA-256 of the release's file by the content of its checksums.
func (r release) findSum(content []byte) (string, error) {
	sum, found := r.readSum(content, path.Base(r.file))
	if !found {
		return "", fmt.Errorf("%s has no checksum of %s", r.sums, path.Base(r.file))
	}
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 {
		return "", fmt.Errorf("what %s has for %s is no SHA-256", r.sums, path.Base(r.file))
	}
	return strings.ToLower(sum), nil
}

func (r release) readSum(content []byte, file string) (sum string, found bool) {
	switch r.sumsForm {
	case sumAlone:
		sum = strings.TrimSpace(string(content))
		return sum, sum != ""
	case sumPerLine:
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == file {
				return fields[0], true
			}
		}
		return "", false
	}
	var answer struct {
		Assets []struct {
			Name   string `json:"name"`
			Digest string `json:"digest"`
		} `json:"assets"`
	}
	if json.Unmarshal(content, &answer) != nil {
		return "", false
	}
	for _, asset := range answer.Assets {
		if asset.Name == file {
			return strings.CutPrefix(asset.Digest, "sha256:")
		}
	}
	return "", false
}
