// What of this library the page uses, for `tsc --checkJs`. Written by hand.
declare const hljs: {
  getLanguage(name: string): unknown;
  highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { value: string };
};
export default hljs;
