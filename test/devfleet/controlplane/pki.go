package controlplane

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validFor is long enough for any local fleet: one that is older is made anew.
const validFor = 5 * 365 * 24 * time.Hour

// writePKI makes the certificates of a cluster in a folder unless they are there: a CA, the API server's serving
// certificate, and the key that signs service account tokens. The API server is also reached at further addresses.
func writePKI(dir, cluster string, further ...net.IP) error {
	if _, err := os.Stat(filepath.Join(dir, "service-account.key")); err == nil {
		return nil
	}
	chain, key, err := certutil.GenerateSelfSignedCertKeyWithOptions(certutil.SelfSignedCertKeyOptions{
		Host: "localhost", MaxAge: validFor,
		AlternateIPs: append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}, further...),
		AlternateDNS: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	})
	if err != nil {
		return fmt.Errorf("making the certificates of %s: %w", cluster, err)
	}
	account, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("making the service account key of %s: %w", cluster, err)
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{"ca.crt", chain}, // the last certificate of the chain is the CA's
		{"apiserver.crt", chain},
		{"apiserver.key", key},
		{"service-account.key", account}, // last: its presence says that the folder is complete
	} {
		if err := keyutil.WriteKey(filepath.Join(dir, file.name), file.content); err != nil {
			return fmt.Errorf("writing %s of %s: %w", file.name, cluster, err)
		}
	}
	return nil
}
