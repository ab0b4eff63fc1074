package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Debian packages that several clients need.
const (
	javaPackages = "default-jdk-headless libmariadb-java"
	nodePackages = "nodejs npm"
)

// install says what to do where a program is missing.
func install(packages string) string {
	return "it needs: apt-get install " + packages + " (make test does it as root on Debian)"
}

// script is the absolute path of a smoke script.
func script(name string) string {
	path, err := filepath.Abs(filepath.Join("testdata", "clients", name))
	if err != nil {
		panic(err) // there is no working directory
	}
	return path
}

// python is the interpreter that Debian's packages are for, not one that comes before it in PATH.
func python() string {
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		return "/usr/bin/python3"
	}
	return "python3"
}

// goClient builds the smoke script of go-sql-driver.
func goClient(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "gosqldriver")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/clients/gosqldriver").CombinedOutput(); err != nil {
		t.Fatalf("build the go-sql-driver client: %v\n%s", err, out)
	}
	return program
}

// javaClient compiles the smoke script of Connector/J, and returns the class path that it runs with.
func javaClient(t *testing.T) string {
	t.Helper()
	dir, driver := t.TempDir(), "/usr/share/java/mariadb-java-client.jar"
	if out, err := exec.Command("javac", "-d", dir, script("Smoke.java")).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s\n%s", err, out, install(javaPackages))
	}
	return dir + ":" + driver
}

// nodeModules is the folder of the node clients that package-lock.json names. They are installed once, for all test
// runs, in the user's cache, under a name that changes with the versions.
func nodeModules(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile(script("node/package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "redrive-test", fmt.Sprintf("node-%.12x", sha256.Sum256(lock)))
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := os.ReadFile(script("node/" + name))
		if err == nil {
			err = os.WriteFile(filepath.Join(work, name), content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s\n%s", err, out, install(nodePackages))
	}
	// Another test process may have been faster; its folder is as good.
	if err := os.Rename(work, dir); err != nil {
		if _, there := os.Stat(modules); there != nil {
			t.Fatal(err)
		}
	}
	return modules
}
